"""Rows for video and textures: sums of absolute differences, coordinates on a cube."""

from tiny.emulator.amd.isa.expression import Value, cast, const, field, select
from tiny.emulator.amd.isa.functions import is_nan
from tiny.emulator.amd.isa.operation import row
from tiny.emulator.amd.isa.operations_float import dx9_product
from tiny.emulator.amd.isa.operations_integer import added, sum_of_differences


# -- sums of absolute differences ----------------------------------------------------------------------------
def masked_sum(a: Value, b: Value, c: Value, clamp: int = 0) -> Value:
    """c plus |a - b| over the bytes where b is not 0."""
    total = const("u32", 0)
    for low in range(0, 32, 8):
        x, y = field(a, low, 8), field(b, low, 8)
        total = total + select(y.equals(0), const("u32", 0), select(x > y, x - y, y - x))
    return added(c, total, clamp)


def plain_sum(a: Value, b: Value, c: Value) -> Value:
    return sum_of_differences(a, b, c, 8)


def four_sums(sum_of):
    """For four windows of four bytes in a, one byte apart: their sums with b, added to the u16 of c."""

    def apply(a: Value, b: Value, c: Value) -> Value:
        result = const("u64", 0)
        for n in range(4):
            total = sum_of(cast(a >> 8 * n, "u32"), b, cast(field(c, 16 * n, 16), "u32"))
            result = result | cast(total & 0xFFFF, "u64") << 16 * n
        return result

    return apply


def four_wide_sums(a: Value, b: Value, *c: Value) -> tuple[Value, ...]:
    """The same in four registers, u32 each."""
    return tuple(masked_sum(cast(a >> 8 * n, "u32"), b, each) for n, each in enumerate(c))


row("v_msad_u8", "u32 = u32 u32 u32", masked_sum, fields=("clamp",))
row("v_qsad_pk_u16_u8", "b64 = b64 b32 b64", four_sums(plain_sum))
row("v_mqsad_pk_u16_u8", "b64 = b64 b32 b64", four_sums(masked_sum))
row("v_mqsad_u32_u8", "u32x4 = b64 b32 u32x4", four_wide_sums)


# -- cube maps: the largest of x, y and z decides which face, z before y before x ----------------------------
def by_axis(x: Value, y: Value, z: Value, of_z: Value, of_y: Value, of_x: Value) -> Value:
    z_wins = (abs(z) >= abs(x)) & (abs(z) >= abs(y))
    return select(z_wins, of_z, select(abs(y) >= abs(x), of_y, of_x))


def cube_face(x: Value, y: Value, z: Value) -> Value:
    faces = (
        select(each < 0.0, const("f32", number + 1.0), number)
        for each, number in ((z, 4.0), (y, 2.0), (x, 0.0))
    )
    return by_axis(x, y, z, *faces)


row("v_cubeid_f32", "f32 = f32 f32 f32", cube_face)
row(
    "v_cubesc_f32",
    "f32 = f32 f32 f32",
    lambda x, y, z: by_axis(x, y, z, select(z < 0.0, -x, x), x, select(x < 0.0, z, -z)),
)
row("v_cubetc_f32", "f32 = f32 f32 f32", lambda x, y, z: by_axis(x, y, z, -y, select(y < 0.0, -z, z), -y))
row("v_cubema_f32", "f32 = f32 f32 f32", lambda x, y, z: by_axis(x, y, z, z * 2.0, y * 2.0, x * 2.0))


def lighting_product(a: Value, b: Value, c: Value) -> Value:
    """a * b, 0 winning over NaN and infinity; the least float where b or c says that there is no light."""
    least = -float.fromhex("0x1.fffffep+127")
    dark = (b <= least) | is_nan(b) | ~(c > 0.0)
    return select(dark, const("f32", least), dx9_product(a, b))


row("v_mullit_f32", "f32 = f32 f32 f32", lighting_product)
