"""Formulas as graphs: parsed through a whitelist, evaluated on whole batches, differentiated exactly."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecast.errors import ForecastError

__all__ = ["FUNCTIONS", "Expression", "FormulaError", "names_in", "parse"]

Array = npt.NDArray[np.float64]

MAX_NODES = 400


class FormulaError(ForecastError):
    """A formula that the whitelist refuses."""


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


# name -> (value, derivative from the argument x and the value y)
FUNCTIONS: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]] = {
    "exp": (np.exp, lambda x, y: y),
    "log": (np.log, lambda x, y: 1.0 / x),
    "log1p": (np.log1p, lambda x, y: 1.0 / (1.0 + x)),
    "expm1": (np.expm1, lambda x, y: y + 1.0),
    "sqrt": (np.sqrt, lambda x, y: 0.5 / y),
    "tanh": (np.tanh, lambda x, y: 1.0 - y * y),
    "sigmoid": (_sigmoid, lambda x, y: y * (1.0 - y)),
}
TWO_ARGUMENTS = ("max", "min", "logaddexp")
_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}


@dataclass(frozen=True)
class Node:
    """One step: an operation on earlier nodes, or a leaf ("number" or "name")."""

    operation: str
    arguments: tuple[int, ...] = ()
    number: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class Expression:
    """A formula as a list of nodes, each after its arguments; equal subformulas are one node."""

    text: str
    nodes: tuple[Node, ...]
    root: int

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that the formula uses, sorted."""
        return tuple(sorted({node.name for node in self.nodes if node.operation == "name"}))

    def values(self, bindings: Mapping[str, Array | float]) -> list[Array]:
        """The value of each node; the last evaluation step of `root` is the formula's value."""
        out: list[Array] = []
        for node in self.nodes:
            if node.operation == "number":
                out.append(np.asarray(node.number))
            elif node.operation == "name":
                out.append(np.asarray(bindings[node.name], dtype=np.float64))
            else:
                out.append(_apply(node.operation, [out[i] for i in node.arguments]))
        return out

    def value(self, bindings: Mapping[str, Array | float]) -> Array:
        """The formula's value, broadcast over the bindings."""
        with np.errstate(all="ignore"):
            return self.values(bindings)[self.root]

    def value_and_gradient(
        self, bindings: Mapping[str, Array | float], wanted: tuple[str, ...]
    ) -> tuple[Array, list[Array]]:
        """The value, and its exact derivative with respect to each wanted name (reverse accumulation).

        All operations act element by element, so one backward sweep gives the derivative of every element.
        """
        needed = self._depends_on(frozenset(wanted))
        with np.errstate(all="ignore"):
            values = self.values(bindings)
            adjoints: dict[int, Array] = {self.root: np.asarray(1.0)}
            gradient: dict[str, Array] = {name: np.asarray(0.0) for name in wanted}
            for index in range(self.root, -1, -1):
                if index not in adjoints or index not in needed:
                    continue
                node, adjoint = self.nodes[index], adjoints.pop(index)
                if node.operation == "name":
                    gradient[node.name] = gradient[node.name] + adjoint
                    continue
                for position, child in enumerate(node.arguments):
                    if child in needed:
                        slope = _slope(node.operation, [values[i] for i in node.arguments], values[index], position)
                        part = adjoint * slope
                        adjoints[child] = adjoints[child] + part if child in adjoints else part
        return values[self.root], [gradient[name] for name in wanted]

    def _depends_on(self, wanted: frozenset[str]) -> frozenset[int]:
        found: set[int] = set()
        for index, node in enumerate(self.nodes):
            if node.name in wanted or any(i in found for i in node.arguments):
                found.add(index)
        return frozenset(found)

    def linear_in(self, candidates: Collection[str]) -> tuple[str, ...]:
        """A largest-first set of the candidates in which the formula is jointly affine."""
        chosen: list[str] = []
        for name in candidates:
            if all(degree <= 1 for degree in self._degrees({*chosen, name})):
                chosen.append(name)
        return tuple(chosen)

    def _degrees(self, names: set[str]) -> list[float]:
        """The polynomial degree of the root in `names` (inf where it is no polynomial)."""
        degrees: list[float] = []
        for node in self.nodes:
            inner = [degrees[i] for i in node.arguments]
            if node.operation == "name":
                degrees.append(1.0 if node.name in names else 0.0)
            elif node.operation in ("+", "-", "neg"):
                degrees.append(max(inner))
            elif node.operation == "*":
                degrees.append(sum(inner))
            elif node.operation == "/":
                degrees.append(inner[0] if inner[1] == 0 else np.inf)
            else:
                degrees.append(0.0 if not inner or max(inner) == 0 else np.inf)
        return [degrees[self.root]]


def _apply(operation: str, x: list[Array]) -> Array:
    match operation:
        case "+":
            return np.asarray(x[0] + x[1])
        case "-":
            return np.asarray(x[0] - x[1])
        case "*":
            return np.asarray(x[0] * x[1])
        case "/":
            return np.asarray(x[0] / x[1])
        case "**":
            return np.asarray(np.power(x[0], x[1]))
        case "neg":
            return np.asarray(-x[0])
        case "max":
            return np.asarray(np.maximum(x[0], x[1]))
        case "min":
            return np.asarray(np.minimum(x[0], x[1]))
        case "logaddexp":
            return _logaddexp(x[0], x[1])
    return np.asarray(FUNCTIONS[operation][0](x[0]))


def _logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), of steps that NumPy vectorises: its own logaddexp takes ten times as long.

    Two infinities of one sign have no difference; fmin makes it infinite, so that the larger, which is either, is left.
    """
    gap = np.fmin(np.abs(x - y), np.inf)
    return np.asarray(np.maximum(x, y) + np.log1p(np.exp(-gap)))


def _slope(operation: str, x: list[Array], value: Array, position: int) -> Array:
    """The partial derivative of one node with respect to its argument at `position`."""
    first = position == 0
    match operation:
        case "+":
            return np.asarray(1.0)
        case "-":
            return np.asarray(1.0 if first else -1.0)
        case "*":
            return x[1 - position]
        case "/":
            return np.asarray(1.0 / x[1] if first else -value / x[1])
        case "**":
            if first:
                return np.asarray(x[1] * np.power(x[0], x[1] - 1.0))
            # 0 ** e is constant in e > 0: its derivative is 0, not 0 * log 0
            return np.asarray(np.where(x[0] > 0, value * np.log(np.where(x[0] > 0, x[0], 1.0)), 0.0))
        case "neg":
            return np.asarray(-1.0)
        case "max":
            return np.asarray((x[position] >= x[1 - position]).astype(np.float64))
        case "min":
            return np.asarray((x[position] <= x[1 - position]).astype(np.float64))
        case "logaddexp":
            return np.asarray(np.exp(x[position] - value))
    return np.asarray(FUNCTIONS[operation][1](x[0], value))


def parse(text: str) -> Expression:
    """The graph of a formula of numbers, names, + - * / **, and the functions of `FUNCTIONS`, max, min, logaddexp.

    Raises FormulaError for anything else: no attribute, index, comparison, text, keyword or other call.
    """
    if len(text) > 2000:
        raise FormulaError(f"the formula has {len(text)} characters, at most 2,000 are read; shorten it")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"the formula {text!r} cannot be read: {error}; write it as in 'A - B*n**(-b)'") from error
    nodes: list[Node] = []
    index: dict[Node, int] = {}

    def keep(node: Node) -> int:
        if node not in index:
            if len(nodes) >= MAX_NODES:
                raise FormulaError(f"the formula has more than {MAX_NODES} steps; shorten it")
            index[node] = len(nodes)
            nodes.append(node)
        return index[node]

    def visit(node: ast.AST) -> int:
        match node:
            case ast.Constant(value=bool()) | ast.Constant(value=complex()):
                pass
            case ast.Constant(value=(int() | float()) as number):
                return keep(Node("number", number=float(number)))
            case ast.Name(id=name):
                if name.startswith("_") or name in FUNCTIONS or name in TWO_ARGUMENTS:
                    raise FormulaError(f"the formula uses the forbidden name {name!r}; rename it")
                return keep(Node("name", name=name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return keep(Node("neg", (visit(operand),)))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return visit(operand)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return keep(Node(_OPERATORS[type(operator)], (visit(left), visit(right))))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name in FUNCTIONS and len(arguments) == 1:
                    return keep(Node(name, (visit(arguments[0]),)))
                if name in TWO_ARGUMENTS and len(arguments) == 2:
                    return keep(Node(name, (visit(arguments[0]), visit(arguments[1]))))
                raise FormulaError(
                    f"the formula calls {name!r} with {len(arguments)} argument(s); "
                    f"allowed are {', '.join(FUNCTIONS)} (one) and {', '.join(TWO_ARGUMENTS)} (two)"
                )
            case _:
                pass
        raise FormulaError(
            f"the formula {text!r} holds a forbidden {type(node).__name__}; "
            "only numbers, names, + - * / ** and the listed functions are read"
        )

    root = visit(tree.body)
    return Expression(text=text, nodes=tuple(nodes), root=root)


def names_in(text: str) -> tuple[str, ...]:
    """Every name in a formula, sorted."""
    return parse(text).names
