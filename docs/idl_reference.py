"""Writes docs/idl.md, the reference of the public contract, from the comments of
idl/*.idl: `python3 docs/idl_reference.py > docs/idl.md`. test/pages/docs_test.py fails
when that was forgotten."""

import os
import re

IDL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "idl")
ORDER = ["types", "job_scheduler", "spool", "accounting", "membership", "administration",
         "alarm_sender", "machine_allocator", "execution_server", "executing_client"]


def comment_of(lines):
    """Comment lines as Markdown. A table and what follows it stay as they are drawn."""
    lines = [re.sub(r"^\s*// ?", "", line) for line in lines]
    drawn = next((i for i, line in enumerate(lines) if " | " in line), len(lines))
    blocks = [[]]
    for line in lines[:drawn]:
        if not line or re.match(r"\s*- ", line):
            blocks.append([])
        blocks[-1].append(line.strip())
    out = [escaped(" ".join(words)).strip() for words in blocks if any(words)]
    if drawn < len(lines):
        out.append("```text\n" + "\n".join(lines[drawn:]) + "\n```")
    return "\n\n".join(out)


def escaped(text):
    return re.sub(r"([*<>])", r"\\\1", text)


def code(lines):
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    return "```idl\n" + "\n".join(line[indent:] for line in lines) + "\n```"


def paragraphs(lines, indent):
    """Pairs of comment lines and the lines that they are about. A comment that stands
    further to the right goes on from the line above it."""
    comment, declared = [], []
    for line in lines + [""]:
        is_comment = line.startswith(indent + "//")
        if not line.strip() or (is_comment and declared):
            if comment or declared:
                yield comment, declared
            comment, declared = [], []
        if is_comment:
            comment.append(line)
        elif line.strip():
            declared.append(line)


def section(comment, declared, level):
    banner = re.match(r"\s*// -+ (.*?) -+$", comment[0]) if comment else None
    if banner:
        yield "%s %s" % (level, banner.group(1)[0].upper() + banner.group(1)[1:])
        comment = comment[1:]
    else:
        named = re.search(r"\b(struct|exception|const unsigned long|typedef .*?) (\w+)\b",
                          declared[0]) if declared else None
        operation = re.match(r"\s*[\w:]+ (\w+)\(", declared[0]) if declared else None
        if operation:
            yield "%s %s" % (level, operation.group(1))
        elif named and named.group(1) == "struct":
            yield "%s %s" % (level, named.group(2))
    if comment:
        yield comment_of(comment)
    if declared:
        yield code(declared)


def interface(name, lines):
    yield "### interface %s" % name
    for comment, declared in paragraphs(lines, "    "):
        yield from section(comment, declared, "####")


def page(name):
    with open(os.path.join(IDL, name + ".idl"), encoding="utf-8") as f:
        text = f.read()
    head, body = text.split("#ifndef", 1)
    yield "## %s.idl" % name
    yield comment_of(head.strip().split("\n"))
    body = body.split("module v1 {\n", 1)[1]
    body = re.split(r"\n};", body, maxsplit=1)[0]
    for part in re.split(r"(?ms)^(  interface \w+ \{\n.*?^  \};\n?)", body):
        match = re.match(r"(?s)  interface (\w+) \{\n(.*)  \};", part)
        if match:
            yield from interface(match.group(1), match.group(2).split("\n"))
        else:
            for comment, declared in paragraphs(part.split("\n"), "  "):
                yield from section(comment, declared, "###")


if __name__ == "__main__":
    print("# The contract, `Sublet::v1`\n")
    print("Made from the comments of `idl/` by `docs/idl_reference.py`; change them there. "
          "[architecture](architecture.md) says who calls whom, [errors](errors.md) which codes "
          "the exceptions carry, `examples/idl-client` is a client written from it alone.")
    for name in ORDER:
        for block in page(name):
            print("\n" + block)
