"""Holds outputs to their schemas: the folder of schemas as the argument, a JSON array of
{"schema", "what", "value"} on standard input. Prints what is wrong, a line each, and exits 1 when something is.

An output must be valid, and must not be any more when a key of it is renamed, at any depth, but where the schema calls
itself open (`$comment`)."""

import copy
import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
import jsonschema  # noqa: E402

folder = pathlib.Path(sys.argv[1]).resolve()
schemas = {file.name: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
store = {(folder / name).as_uri(): schema for name, schema in schemas.items()}


def validator(name):
    resolver = jsonschema.RefResolver((folder / name).as_uri(), schemas[name], store=store)
    return jsonschema.Draft202012Validator(schemas[name], resolver=resolver)


def objects(value, path=()):
    """Every object in a value, with its path; of an array the first elements."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from objects(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value[:3]):
            yield from objects(inner, (*path, at))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def renamed(value):
    """The value with one key renamed: each key of each object in turn."""
    for path in objects(value):
        for key in at(value, path):
            other = copy.deepcopy(value)
            inner = at(other, path)
            inner[key + "_renamed"] = inner.pop(key)
            yield ".".join(map(str, (*path, key))), other


wrong = []
for name, schema in schemas.items():
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        wrong.append(f"{name} is no schema: {error.message}")
for sample in json.load(sys.stdin):
    name, what, value = sample["schema"] + ".json", sample["what"], sample["value"]
    if name not in schemas:
        wrong.append(f"{what}: there is no {name}")
        continue
    holds = validator(name)
    errors = list(holds.iter_errors(value))
    for error in errors:
        inner = "; ".join(f"{'.'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in error.context or [])
        wrong.append(f"{what}: {name} at {'.'.join(map(str, error.absolute_path))}: {error.message[:600]} {inner}")
    if errors or '"$comment": "open: ' in json.dumps(schemas[name]):
        continue
    wrong += [f"{what}: {name} does not notice that {key} has another name" for key, other in renamed(value) if holds.is_valid(other)]

print("\n".join(wrong))
sys.exit(1 if wrong else 0)
