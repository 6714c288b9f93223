"""A tree of nodes to YAML text that reads as the same tree: what stood in quotes does so again, since quotes decide
whether `010` is text."""

import yaml

from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar

_WIDTH = 1_000_000  # no line is broken: a word of a command stays one for the eye too
_RESOLVER = yaml.resolver.Resolver()


def text_of(node: Node) -> str:
    return str(yaml.serialize(_node(node), Dumper=yaml.SafeDumper, allow_unicode=True, width=_WIDTH))


def _node(node: Node) -> yaml.Node:
    """Recursion is bounded by the depth of the tree."""
    match node:
        case Scalar():
            return _scalar(node)
        case Listing():
            items = [_node(item) for item in node.items]
            return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=not items)
        case Entries():
            pairs = [(_scalar(key), _node(value)) for key, value in node.entries]
            return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not pairs)


def _scalar(scalar: Scalar) -> yaml.ScalarNode:
    """Tags are never written: the one that a plain scalar has by itself, or text for what stands in quotes."""
    if scalar.is_plain:
        tag = _RESOLVER.resolve(yaml.ScalarNode, scalar.text, (True, False))  # type: ignore[no-untyped-call]
        return yaml.ScalarNode(tag, scalar.text)
    style = "|" if "\n" in scalar.text else '"'
    return yaml.ScalarNode("tag:yaml.org,2002:str", scalar.text, style=style)
