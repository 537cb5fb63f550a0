"""The part of JSON Schema that msgspec writes: whether a value keeps to a schema, and values that do or do not.

Keywords that are not known here are an error, so that no part of a description goes unchecked.
"""

import re

_SILENT = {"title", "description", "default", "$defs"}
_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def problems(value, schema, root, where="$"):
    """What is wrong with a value, a line each."""
    if "$ref" in schema:
        return problems(value, resolve(schema, root), root, where)
    if "anyOf" in schema:
        found = [problems(value, one, root, where) for one in schema["anyOf"]]
        return [] if [] in found else [f"{where} is none of {len(found)}: {found}"]
    unknown = set(schema) - _SILENT - _CHECKS.keys()
    assert not unknown, f"{where}: the tests know no {unknown}"
    return [line for key, check in _CHECKS.items() if key in schema for line in check(value, schema, root, where)]


def resolve(schema, root):
    """The schema that another one refers to."""
    while "$ref" in schema:
        node = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


def _type(value, schema, root, where):
    right = isinstance(value, _TYPES[schema["type"]]) and (schema["type"] == "boolean" or not isinstance(value, bool))
    return [] if right else [f"{where} is no {schema['type']}: {value!r}"]


def _enum(value, schema, root, where):
    return [] if value in schema["enum"] else [f"{where} is none of {schema['enum']}: {value!r}"]


def _const(value, schema, root, where):
    return [] if value == schema["const"] else [f"{where} is not {schema['const']}: {value!r}"]


def _properties(value, schema, root, where):
    if not isinstance(value, dict):
        return []
    known = schema["properties"]
    lines = [
        line for key in value.keys() & known.keys() for line in problems(value[key], known[key], root, f"{where}.{key}")
    ]
    return lines


def _additional(value, schema, root, where):
    if not isinstance(value, dict):
        return []
    further = value.keys() - schema.get("properties", {}).keys()
    if schema["additionalProperties"] is False:
        return [f"{where} has {key!r}" for key in further]
    if schema["additionalProperties"] is True:
        return []
    return [
        line for key in further for line in problems(value[key], schema["additionalProperties"], root, f"{where}.{key}")
    ]


def _required(value, schema, root, where):
    return [f"{where} lacks {key}" for key in schema["required"] if isinstance(value, dict) and key not in value]


def _items(value, schema, root, where):
    if not isinstance(value, list) or schema["items"] is False:
        return []
    start = len(schema.get("prefixItems", []))
    rest = list(enumerate(value))[start:]
    return [line for place, one in rest for line in problems(one, schema["items"], root, f"{where}[{place}]")]


def _prefix(value, schema, root, where):
    if not isinstance(value, list):
        return []
    pairs = enumerate(zip(value, schema["prefixItems"], strict=False))
    return [line for place, (one, of) in pairs for line in problems(one, of, root, f"{where}[{place}]")]


def _bound(key, measure, is_within):
    def check(value, schema, root, where):
        measured = measure(value)
        if measured is None or is_within(measured, schema[key]):
            return []
        return [f"{where} breaks {key} {schema[key]}: {value!r}"]

    return check


def _number(value):
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _length(kind):
    return lambda value: len(value) if isinstance(value, kind) else None


def _pattern(value, schema, root, where):
    wrong = isinstance(value, str) and not re.search(schema["pattern"], value)
    return [f"{where} does not match {schema['pattern']}"] if wrong else []


def _encoding(value, schema, root, where):
    assert schema["contentEncoding"] == "base64"
    return []


def _at_most(one, most):
    return one <= most


def _at_least(one, least):
    return one >= least


_CHECKS = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "additionalProperties": _additional,
    "required": _required,
    "items": _items,
    "prefixItems": _prefix,
    "pattern": _pattern,
    "contentEncoding": _encoding,
    "minimum": _bound("minimum", _number, _at_least),
    "maximum": _bound("maximum", _number, _at_most),
    "exclusiveMinimum": _bound("exclusiveMinimum", _number, lambda one, least: one > least),
    "minLength": _bound("minLength", _length(str), _at_least),
    "maxLength": _bound("maxLength", _length(str), _at_most),
    "minItems": _bound("minItems", _length(list), _at_least),
    "maxItems": _bound("maxItems", _length(list), _at_most),
}

STRINGS = [
    "",
    "a",
    "red",
    "blue",
    "nobody",
    "127.0.0.1:1",
    "x" * 300,
    "\x00",
    "é\u2028",
    "../../etc/passwd",
    "%2e%2e",
    "1" * 40,
]
NUMBERS = [0, 1, -1, 0.5, 1e12, 1.1e12, -1e300, 2**53, 2**64, 10**30, 5e-324]


def draw(rng, schema, root, strings=STRINGS):
    """A value that keeps to a schema, but for lengths and patterns of strings."""
    schema = resolve(schema, root)
    if "anyOf" in schema:
        return draw(rng, rng.choice(schema["anyOf"]), root, strings)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if kind == "object":
        needed = schema.get("required", [])
        known = schema.get("properties", {}).items()
        return {key: draw(rng, one, root, strings) for key, one in known if key in needed or rng.random() < 0.5}
    if kind == "array":
        prefix = [draw(rng, one, root, strings) for one in schema.get("prefixItems", [])]
        return prefix or [draw(rng, schema["items"], root, strings) for _ in range(rng.choice([0, 1, 2, 5]))]
    simple = {"string": strings, "boolean": [True, False], "null": [None], "integer": [0, 1, 7], "number": [0, 0.5, 1]}
    return rng.choice(simple[kind])


def spoil(rng, value):
    """The same value with one part replaced by something else."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if inner and rng.random() < 0.7:
        key, one = rng.choice(inner)
        spoiled = value.copy()
        spoiled[key] = spoil(rng, one)
        return spoiled
    junk = [None, True, {}, [], {"x": 1}, [[[[]]]], {"reward": {}}, *STRINGS, *NUMBERS]
    return rng.choice(junk)
