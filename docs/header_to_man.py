"""checkpoint-api/sublet_checkpoint.h as a manual page of section 3: `header_to_man.py
HEADER NAME VERSION "what it is in short"` writes roff to stdout. Every declaration
with the comment above it."""

import re
import sys

from markdown_to_man import escaped


def no_request(line):
    return ("\\&" if line.startswith((".", "'")) else "") + line


def running(text):
    """A comment's words; our calls and constants, and what is in backquotes, in bold."""
    out = ""
    for ours, plain in re.findall(r"(`[^`]+`|\bsublet_\w+(?:\(\))?|\bSUBLET_\w+)|(.\w*)", text):
        out += "\\fB" + escaped(ours.strip("`")) + "\\fR" if ours else escaped(plain)
    return no_request(out)


def comment_lines(text):
    text = re.sub(r"^\s*/\*|\*/\s*$", "", text)
    return [re.sub(r"^ ?\* ?", "", line).rstrip() for line in text.split("\n")]


def prose(text):
    """A comment as paragraphs; lines that are indented are an example."""
    example = False
    for line in comment_lines(text):
        indented = line.startswith("  ")
        if indented != example:
            yield ".RS 4\n.nf" if indented else ".fi\n.RE"
            example = indented
        if not line.strip():
            yield ".PP"
        else:
            yield no_request(escaped(line[2:])) if indented else running(line.strip())


def groups(text):
    """(comment, declarations) in the header's order; one may be empty."""
    pattern = r"(?ms)^(/\*.*?\*/\n)?((?:^(?!/\*|#|\n)[^\n]*\n)+)|^(/\*.*?\*/\n)"
    for comment, declared, lone in re.findall(pattern, text):
        yield comment or lone, declared


def manual(text, name, version, short):
    head = re.match(r"(?s)/\*.*?\*/\n", text).group()
    body = text[len(head):].split('extern "C" {\n#endif\n', 1)[1].split("#ifdef __cplusplus")[0]
    # Of an inline function and its declaration for other compilers, the declaration.
    body = re.sub(r"(?ms)^#if .*?^#else\n(.*?)^#endif\n", r"\1", body)
    yield '.TH %s 3 "" "Sublet %s" "Sublet"\n.ad l\n.nh' % (name.upper(), version)
    yield ".SH NAME\n%s \\- %s" % (escaped(name), escaped(short))
    yield ".SH SYNOPSIS\n.B #include \\(dqsublet_checkpoint.h\\(dq"
    yield ".SH DESCRIPTION"
    yield from prose(head)
    yield ".SH DECLARATIONS"
    for comment, declared in groups(body):
        if declared:
            yield ".PP\n.nf\n.B\n" + "\n".join("\\fB%s\\fR" % escaped(line) for line in
                                               declared.rstrip("\n").split("\n")) + "\n.fi"
        if comment:
            yield ".RS 4"
            yield from prose(comment)
            yield ".RE"
    yield ".SH SEE ALSO\n\\fBsublet\\-checkpoint\\fR(7)"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(manual(header.read(), *sys.argv[2:])))
