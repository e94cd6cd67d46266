"""Apply rules to a graph from its leaves up, again and again, until none applies."""
from tiny.ir.node import Node
from tiny.ir.rules import Rules

LONGEST = 500                                               # replacements of replacements of a node


class RewriteError(RuntimeError):
    """Rules that undo one another, or that never come to an end: the message names them."""


def rewrite(root: Node, rules: Rules, done: dict[Node, Node] | None = None) -> Node:
    """The graph below `root` with every rule applied that applies anywhere, operands before users.

    done: results so far; give the same dict again for several roots, or for graphs that share parts. It is
    valid for one set of rules, and keeps its nodes alive. No recursion: graphs may be deep. Raises
    RewriteError when rules go in a circle or make a node grow without end. A replacement of another shape
    is not made, such as the scalar 0 for x * 0 with lanes.
    """
    done = {} if done is None else done
    result, functions = done.get, rules.functions
    becomes: dict[Node, Node] = {}                          # what a node was replaced by: not done yet
    age: dict[Node, int] = {}                               # of replacements: how many came before
    stack = [root]
    while stack:
        node = stack[-1]
        waiting = changed = False
        for s in node.src:
            after = result(s)
            if after is None:
                stack.append(s)
                waiting = True
                if node in age:
                    age[s] = age[node]
            elif after is not s:
                changed = True
        if waiting:
            continue
        if node in done:                                    # it was an operand twice
            stack.pop()
            continue
        if node in becomes:
            found = becomes[node]
        elif changed:
            found = Node(node.op, node.dtype, tuple([done[s] for s in node.src]), node.arg)
        else:
            function = functions[node.op]
            found = None if function is None else function(node)
        if found is None or found.shape != node.shape:      # a scalar where lanes were would spread further
            done[node] = node
        elif found in done:
            done[node] = done[found]
        else:
            becomes[node] = found
            age[found] = age.get(node, 0) + 1
            if found in becomes or age[found] > LONGEST:
                raise RewriteError(_blame(node, rules, becomes))
            stack.append(found)
            continue
        stack.pop()
    return done[root]


def _blame(node: Node, rules: Rules, becomes: dict[Node, Node]) -> str:
    """Which rules lead on from `node`, as far as they were followed."""
    names, last = [], node
    for _ in range(8):
        applied = rules.explain(node)
        if applied is None and node not in becomes:
            break
        names.append(applied[0] if applied is not None else "new operands")
        last, node = node, becomes.get(node, node)
        if last is node:
            break
    return (f"rewrite: the rules {' -> '.join(names)} do not come to an end at {last!r}; "
            "take one of them out or give it a guard")
