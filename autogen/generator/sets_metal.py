"""Header set of Metal, from the copy of metal-cpp that a wheel carries (Apache 2.0)."""
from tiny.autogen.generator import metal
from tiny.autogen.generator.manifest import Folder, Header, HeaderSet, Records, Table
from tiny.autogen.generator.packages import Package

MLX = Package("mlx-metal", "wheel", "0.32.4", ("mlx/include/metal_cpp/*/*.hpp",),
              platform="macosx_14_0_arm64")
_ROOT = "mlx/include/metal_cpp"

_MESSAGES = {
    "Device": ("name", "supportsFamily:", "newCommandQueue", "newCommandQueueWithMaxCommandBufferCount:",
               "newBufferWithLength:options:", "newBufferWithBytesNoCopy:length:options:deallocator:",
               "newLibraryWithSource:options:error:", "newLibraryWithData:error:",
               "newComputePipelineStateWithFunction:error:",
               "newComputePipelineStateWithDescriptor:options:reflection:error:", "newSharedEvent",
               "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:", "maxBufferLength",
               "maxThreadgroupMemoryLength", "recommendedMaxWorkingSetSize", "hasUnifiedMemory",
               "sampleTimestamps:gpuTimestamp:"),
    "CommandQueue": ("commandBuffer", "commandBufferWithUnretainedReferences"),
    "CommandBuffer": ("computeCommandEncoder", "computeCommandEncoderWithDispatchType:", "blitCommandEncoder",
                      "encodeSignalEvent:value:", "encodeWaitForEvent:value:", "commit",
                      "waitUntilCompleted", "status",
                      "error", "GPUStartTime", "GPUEndTime", "setLabel:"),
    "CommandEncoder": ("endEncoding", "setLabel:"),
    "ComputeCommandEncoder": ("setComputePipelineState:", "setBuffer:offset:atIndex:",
                              "setBytes:length:atIndex:",
                              "setThreadgroupMemoryLength:atIndex:",
                              "dispatchThreadgroups:threadsPerThreadgroup:",
                              "dispatchThreads:threadsPerThreadgroup:", "memoryBarrierWithScope:",
                              "useResource:usage:", "useResources:count:usage:",
                              "executeCommandsInBuffer:withRange:"),
    "BlitCommandEncoder": ("copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
                           "fillBuffer:range:value:"),
    "Buffer": ("contents", "length", "gpuAddress"),
    "Library": ("newFunctionWithName:",),
    "ComputePipelineState": ("maxTotalThreadsPerThreadgroup", "threadExecutionWidth",
                             "staticThreadgroupMemoryLength"),
    "SharedEvent": ("signaledValue", "setSignaledValue:", "waitUntilSignaledValue:timeoutMS:"),
    "IndirectCommandBuffer": ("indirectComputeCommandAtIndex:", "resetWithRange:"),
    "IndirectComputeCommand": ("setComputePipelineState:", "setKernelBuffer:offset:atIndex:",
                               "concurrentDispatchThreadgroups:threadsPerThreadgroup:", "setBarrier",
                               "reset"),
    "CompileOptions": ("setLanguageVersion:", "setFastMathEnabled:", "setMathMode:",
                       "setPreserveInvariance:"),
    "ComputePipelineDescriptor": ("setComputeFunction:", "setSupportIndirectCommandBuffers:"),
    "IndirectCommandBufferDescriptor": ("setCommandTypes:", "setInheritBuffers:", "setInheritPipelineState:",
                                        "setMaxKernelBufferBindCount:"),
    "String": ("UTF8String",),
    "Error": ("localizedDescription", "code", "domain"),
}
# MTLResourceOptions has no name in C++: its first member is named instead
_ENUMS = (r"ResourceCPUCacheMode", r"StorageMode", r"HazardTrackingMode", r"CPUCacheMode",
          r"CommandBufferStatus",
          r"CommandBufferError", r"GPUFamily", r"ResourceUsage", r"DispatchType", r"BarrierScope",
          r"IndirectCommandType",
          r"LanguageVersion", r"MathMode", r"PipelineOption", r"LibraryError")
# stand-ins for system headers of a Mac: just what metal-cpp's declarations need to parse
_STUBS = (
    ("CoreFoundation/CoreFoundation.h", "#pragma once\ntypedef double CFTimeInterval;\n"),
    ("CoreGraphics/CGGeometry.h", "#pragma once\nstruct CGSize { double width, height; };\n"),
    ("CoreGraphics/CGColorSpace.h", "#pragma once\ntypedef struct CGColorSpace *CGColorSpaceRef;\n"),
    ("IOSurface/IOSurfaceRef.h", "#pragma once\ntypedef struct __IOSurface *IOSurfaceRef;\n"),
    ("TargetConditionals.h", "#pragma once\n"),
    ("cstddef", "#pragma once\n#include <stddef.h>\n"),
    ("cstdint", "#pragma once\n#include <stdint.h>\nnamespace std "
                "{ using ::uint8_t; using ::uint16_t; using ::uint32_t; "
                "using ::uint64_t; using ::int32_t; using ::int64_t; using ::intptr_t; using ::uintptr_t; "
                "}\n"),
    ("dispatch/dispatch.h", "#pragma once\ntypedef struct dispatch_data_s *dispatch_data_t;\n"
                            "typedef struct dispatch_queue_s *dispatch_queue_t;\n"),
    ("dlfcn.h", "#pragma once\nextern \"C\" void *dlsym(void *, const char *);\n#define RTLD_DEFAULT ((void "
                "*)0)\n"),
    ("functional", "#pragma once\nnamespace std { template <class T> struct function { function(T); }; "
                   "template <class R, class... A> struct function<R(A...)> "
                   "{ template <class F> function(F); "
                   "R operator()(A...) const; }; }\n"),
    ("mach/mach.h", "#pragma once\ntypedef unsigned int task_id_token_t;\ntypedef unsigned int "
                    "kern_return_t;\n"),
    ("objc/message.h", "#pragma once\nextern \"C\" void objc_msgSend(void);\nextern \"C\" void "
                       "objc_msgSend_fpret(void);\n"
                       "extern \"C\" void objc_msgSend_stret(void);\n"),
    ("objc/runtime.h", "#pragma once\n#include <stddef.h>\ntypedef struct objc_selector *SEL;\n"
                       "struct objc_object { void *isa; };\ntypedef struct objc_object *id;\n"
                       "typedef struct objc_class *Class;\ntypedef struct objc_method *Method;\n"
                       "extern \"C\" "
                       "{ SEL sel_registerName(const char *); void *objc_lookUpClass(const char *); "
                       "void *objc_getProtocol(const char *); Class object_getClass(id); }\n"),
    ("simd/simd.h", "#pragma once\n"),
    ("type_traits", "#pragma once\nnamespace std { typedef decltype(nullptr) nullptr_t; using ::size_t; "
                    "template <class T> struct is_void "
                    "{ static constexpr bool value = false; "
                    "constexpr operator bool() const { return false; } }; "
                    "template <class T> struct is_floating_point "
                    "{ constexpr operator bool() const { return false; } }; "
                    "template <class T> constexpr bool is_class_v = false; "
                    "template <class A, class B> constexpr bool is_convertible_v = true; "
                    "template <bool B, class T = void> using enable_if_t = T; }\n"),
)

SETS = (
    HeaderSet("metal", "Messages, enumerations and structs of Metal's compute half, from metal-cpp.",
              (Header(MLX, f"{_ROOT}/Metal/Metal.hpp", "Metal/Metal.hpp"),
               Header(MLX, f"{_ROOT}/Metal/MTLHeaderBridge.hpp"),
               Header(MLX, f"{_ROOT}/Foundation/NSPrivate.hpp")),
              (Folder(MLX, _ROOT),),
              (Table("", metal.enumerations, _ENUMS),
               Table("MESSAGES", metal.messages,
                     tuple(f"{c} {s}" for c, many in _MESSAGES.items() for s in many)),
               Records(names=("Size", "Range"))),
              preamble="#define INFINITY __builtin_inff()", stubs=_STUBS, language="c++",
              notes="Apple's own headers are never bundled: metal-cpp is a separate library, under the "
                    "Apache 2.0 licence."),
)
