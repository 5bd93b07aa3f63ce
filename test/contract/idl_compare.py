#!/usr/bin/env python3
"""Lists every change between two versions of the IDL.

usage: idl_compare.py OLD_FOLDER NEW_FOLDER
Each folder holds the .idl files of one version. "incompatible" marks a change that breaks
a client or server built from OLD; "compatible" marks any other change. omniidl parses the
files, with this script as its back end.
Exit status: 0 no incompatible change, 1 incompatible changes, 2 usage error or invalid IDL."""

import json
import os
import re
import subprocess
import sys

BASIC = {1: "void", 2: "short", 3: "long", 4: "unsigned short", 5: "unsigned long", 6: "float",
         7: "double", 8: "boolean", 9: "char", 10: "octet", 11: "any", 12: "TypeCode",
         13: "Principal", 23: "long long", 24: "unsigned long long", 25: "long double",
         26: "wchar"}


class Unreadable(Exception):
    """A folder without valid IDL; the text is from omniidl where it ran."""


# The back end: prints the declarations of a file as one line of JSON.

def spelt(kind, resolve):
    """A type as text. With `resolve`, typedefs are replaced by what they stand for."""
    name = type(kind).__name__
    if name == "Base":
        return BASIC[kind.kind()]
    if name in ("String", "WString"):
        return name.lower() + ("<%d>" % kind.bound() if kind.bound() else "")
    if name == "Sequence":
        bound = ", %d" % kind.bound() if kind.bound() else ""
        return "sequence<%s%s>" % (spelt(kind.seqType(), resolve), bound)
    if name == "Fixed":
        return "fixed<%d, %d>" % (kind.digits(), kind.scale())
    declared = kind.decl()
    if resolve and type(declared).__name__ == "Declarator":
        return spelt(declared.alias().aliasType(), True) + sizes(declared)
    return "::".join(kind.scopedName())


def sizes(declarator):
    return "".join("[%d]" % size for size in declarator.sizes() or [])


def typed(of, declarator=None, /, **more):
    array = sizes(declarator) if declarator else ""
    return dict(more, type=spelt(of, False) + array, wire=spelt(of, True) + array)


def members(declared):
    return [typed(member.memberType(), one, name=one.identifier())
            for member in declared.members() for one in member.declarators()]


def label(case):
    if case.default():
        return "default"
    value = case.value()
    return value.identifier() if hasattr(value, "identifier") else str(value)


def names_of(declarations):
    return ["::".join(declared.scopedName()) for declared in declarations]


def operation(declared):
    return {"kind": "operation", "oneway": bool(declared.oneway()),
            "result": typed(declared.returnType()),
            "parameters": [typed(one.paramType(), name=one.identifier(), direction=one.dirtext())
                           for one in declared.parameters()],
            "raises": names_of(declared.raises()), "contexts": list(declared.contexts())}


def described(declared):
    """(name, repository id, facts) of each name that a declaration introduces."""
    kind = type(declared).__name__
    if kind in ("Struct", "Exception"):
        facts = {"kind": kind.lower(), "members": members(declared)}
    elif kind == "Union":
        facts = {"kind": "union", "switch": typed(declared.switchType()), "members": [
            typed(case.caseType(), case.declarator(), name=case.declarator().identifier(),
                  labels=[label(one) for one in case.labels()]) for case in declared.cases()]}
    elif kind == "Enum":
        facts = {"kind": "enum", "values": [one.identifier() for one in declared.enumerators()]}
    elif kind == "Const":
        value = declared.value()
        facts = typed(declared.constType(), kind="constant",
                      value=value.identifier() if hasattr(value, "identifier") else repr(value))
    elif kind == "Interface":
        facts = {"kind": "interface", "inherits": names_of(declared.inherits()),
                 "nature": [bool(declared.abstract()), bool(declared.local())]}
    elif kind == "Operation":
        facts = operation(declared)
    elif kind == "Typedef":
        return [("::".join(one.scopedName()), one.repoId(),
                 typed(declared.aliasType(), one, kind="typedef"))
                for one in declared.declarators()]
    elif kind == "Attribute":
        return [("::".join(one.scopedName()), one.repoId(),
                 typed(declared.attrType(), kind="attribute", readonly=bool(declared.readonly())))
                for one in declared.declarators()]
    elif kind == "Module":
        return []  # part of the names of its contents
    elif kind in ("Forward", "StructForward", "UnionForward"):
        return []
    else:
        raise SystemExit("idl_compare: unsupported declaration: " + kind)
    return [("::".join(declared.scopedName()), declared.repoId(), facts)]


def inside(declared):
    kind = type(declared).__name__
    if kind == "Module":
        return declared.definitions()
    return declared.contents() if kind == "Interface" else []


def run(tree, _arguments):
    found, todo = [], list(tree.declarations())
    while todo:
        declared = todo.pop(0)
        if declared.mainFile():
            found += described(declared)
        if declared.mainFile() or type(declared).__name__ == "Module":
            todo = list(inside(declared)) + todo
    print(json.dumps([os.path.basename(tree.file()), found]))


# The comparison.

def read_contract(folder):
    """Returns the declarations (name -> facts) and the comments (file -> text)."""
    declarations, comments = {}, {}
    files = sorted(name for name in os.listdir(folder) if name.endswith(".idl"))
    if not files:
        raise Unreadable("%s: no .idl files" % folder)
    done = subprocess.run(
        ["omniidl", "-p" + os.path.dirname(os.path.abspath(__file__)), "-bidl_compare",
         "-I" + folder] + [os.path.join(folder, file) for file in files],
        capture_output=True, text=True, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    if done.returncode:
        raise Unreadable(done.stderr.strip() or done.stdout.strip())
    for line in done.stdout.splitlines():
        file, found = json.loads(line)
        declarations.update((name, dict(facts, id=identity, file=file))
                            for name, identity, facts in found)
    for file in files:
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            words = re.findall(r"//[^\n]*|/\*.*?\*/", f.read(), re.S)
        comments[file] = re.sub(r"[\s/*]+", " ", " ".join(words))
    return declarations, comments


class Comparison:
    """Compares two results of read_contract()."""

    def __init__(self, old, new):
        self.lines = []
        (before, old_comments), (after, new_comments) = old, new
        for name in before:
            if name not in after:
                self.breaks(name, "%s removed" % before[name]["kind"])
            else:
                self.compare(name, before[name], after[name])
        for name in after:
            if name not in before:
                self.keeps(name, "new %s" % after[name]["kind"])
        for file in old_comments:
            if old_comments[file] != new_comments.get(file, old_comments[file]):
                self.keeps(file, "comments changed")

    def breaks(self, name, what):
        self.lines.append("incompatible: %s: %s" % (name, what))

    def keeps(self, name, what):
        self.lines.append("compatible: %s: %s" % (name, what))

    def incompatible(self):
        return [line for line in self.lines if line.startswith("incompatible")]

    def compare(self, name, old, new):
        if old["kind"] != new["kind"]:
            self.breaks(name, "was %s, is %s" % (old["kind"], new["kind"]))
            return
        if old["id"] != new["id"]:
            self.breaks(name, "repository id was %s, is %s" % (old["id"], new["id"]))
        if old["file"] != new["file"]:
            self.keeps(name, "moved from %s to %s" % (old["file"], new["file"]))
        for fact, called in (("value", "value"), ("values", "values"), ("readonly", "readonly"),
                             ("oneway", "oneway"), ("inherits", "inherits"),
                             ("nature", "abstract, local"), ("contexts", "context")):
            if old.get(fact) != new.get(fact):
                self.breaks(name, "%s: was %s, is %s" % (called, old[fact], new[fact]))
        for fact, called in (("result", "result"), ("switch", "discriminator")):
            if fact in old:
                self.types(name, called, old[fact], new[fact])
        if "type" in old:
            self.types(name, "type", old, new)
        if "members" in old:
            self.members(name, old["members"], new["members"])
        if old["kind"] == "operation":
            self.parameters(name, old["parameters"], new["parameters"])
            self.raises(name, set(old["raises"]), set(new["raises"]))

    def types(self, name, called, old, new):
        """Compares two types. A change behind an unchanged name is reported at its declaration."""
        if old["type"] != new["type"]:
            report = self.breaks if old["wire"] != new["wire"] else self.keeps
            report(name, "%s: was %s, is %s" % (called, old["type"], new["type"]))

    def members(self, name, old, new):
        was, now = [one["name"] for one in old], [one["name"] for one in new]
        gone = [one for one in was if one not in now]
        come = [one for one in now if one not in was]
        for at, one in enumerate(was):  # same position and type, new name
            if one in gone and at < len(now) and now[at] in come and \
                    old[at]["wire"] == new[at]["wire"]:
                self.breaks(name, "member %s renamed to %s" % (one, now[at]))
                gone.remove(one)
                come.remove(now[at])
        for one in gone:
            self.breaks(name, "member %s removed" % one)
        for one in come:
            self.breaks(name, "new member %s" % one)
        if [one for one in was if one in now] != [one for one in now if one in was]:
            self.breaks(name, "members reordered: were %s, are %s" % (", ".join(was),
                                                                      ", ".join(now)))
        for one in old:
            for other in new:
                if one["name"] == other["name"]:
                    self.types(name, "member " + one["name"], one, other)
                    if one.get("labels") != other.get("labels"):
                        self.breaks(name, "member %s: cases were %s, are %s" % (
                            one["name"], one["labels"], other["labels"]))

    def parameters(self, name, old, new):
        if len(old) != len(new):
            was, now = [" ".join((p["direction"], p["type"], p["name"])) for p in old], \
                [" ".join((p["direction"], p["type"], p["name"])) for p in new]
            for one in was:
                if one not in now:
                    self.breaks(name, "parameter removed: " + one)
            for one in now:
                if one not in was:
                    self.breaks(name, "new parameter: " + one)
            return
        for one, other in zip(old, new):
            if one["name"] != other["name"]:
                same = sorted(p["name"] for p in old) == sorted(p["name"] for p in new)
                # GIOP sends no names, so a new name is compatible; an exchange is not.
                report = self.breaks if same else self.keeps
                report(name, "parameter %s is now %s" % (one["name"], other["name"]))
            if one["direction"] != other["direction"]:
                self.breaks(name, "parameter %s: was %s, is %s" % (one["name"], one["direction"],
                                                                   other["direction"]))
            self.types(name, "parameter " + one["name"], one, other)

    def raises(self, name, old, new):
        for one in sorted(old - new):
            self.breaks(name, "no longer raises " + one)
        for one in sorted(new - old):
            self.breaks(name, "now raises " + one)


def main(arguments):
    if arguments in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if len(arguments) != 2 or any(word.startswith("-") for word in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        comparison = Comparison(*map(read_contract, arguments))
    except (OSError, Unreadable) as error:
        print("idl_compare: %s" % error, file=sys.stderr)
        return 2
    for line in comparison.lines:
        print(line)
    wrong = len(comparison.incompatible())
    print("idl_compare: %d incompatible, %d compatible changes" % (
        wrong, len(comparison.lines) - wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
