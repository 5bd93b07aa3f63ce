"""A page of docs/ as a manual page: `markdown_to_man.py PAGE.md NAME SECTION VERSION
"what it is in short"` writes roff to stdout. Understands what these pages use:
headings, paragraphs, lists, tables, fenced blocks, `code`, **bold**, [links](x)."""

import re
import sys

ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", '"': "\\(dq", "^": "\\(ha", "~": "\\(ti",
           "`": "\\(ga"}
ITEM = r"- |\d+\. "


def escaped(text):
    return "".join(ESCAPES.get(c, c) for c in text)


def running(text):
    """A line of text with its code in bold."""
    text = re.sub(r"\[([^\]`]*|`[^`]*`)\]\([^)]*\)", r"\1", text)
    out = ""
    pieces = r"`([^`]+)`|\*\*([^*]+)\*\*|\*([^*`\s][^*`]*)\*|(.[^`*]*)"
    for code, strong, emphasis, plain in re.findall(pieces, text):
        if plain:
            out += escaped(plain)
        else:
            out += ("\\fI" if emphasis else "\\fB") + escaped(code or strong or emphasis) + "\\fR"
    return ("\\&" if out.startswith(".") else "") + out


def cells(line):
    inner = line.strip()[1:-1].replace("\\|", "\0")
    return [cell.strip().replace("\0", "|") for cell in inner.split("|")]


def table(lines):
    rows = [cells(line) for line in lines if not re.fullmatch(r"[|\s:-]+", line)]
    heading, rows = rows[0], rows[1:]
    if len(heading) == 2:
        for term, text in rows:
            yield ".TP\n%s\n%s" % (running(term) or "\\&", running(text))
        return
    # A column is as wide as its longest word; the last has the rest.
    widths = [max(len(word) for row in rows + [heading] for word in (row[i] or " ").split(" "))
              for i in range(len(heading) - 1)]
    yield ".TS\n%s." % " ".join(["lw(%dn)" % width for width in widths] + ["lx"])
    for row in [["**%s**" % c if c else c for c in heading]] + rows:
        yield "\t".join("T{\n%s\nT}" % running(cell) for cell in row)
    yield ".TE"


def blocks(text):
    """(kind, lines): "code", "table", "item", "heading" or "text"."""
    lines = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S).split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        begin = at
        at += 1
        if line.startswith("```"):
            while not lines[at].startswith("```"):
                at += 1
            at += 1
            yield "code", lines[begin + 1:at - 1]
        elif line.startswith("    "):
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            yield "code", [code[4:] for code in lines[begin:at]]
        elif line.startswith("|"):
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            yield "table", lines[begin:at]
        elif line.startswith("#"):
            yield "heading", [line]
        elif line:
            while at < len(lines) and lines[at] and not re.match(r"```|[|#]|" + ITEM, lines[at]):
                at += 1
            yield ("item" if re.match(ITEM, line) else "text"), lines[begin:at]


def manual(text, name, section, version, short):
    yield "'\\\" t"
    yield '.TH %s %s "" "Sublet %s" "Sublet"\n.ad l\n.nh' % (name.upper(), section, version)
    yield ".SH NAME\n%s \\- %s\n.SH DESCRIPTION" % (escaped(name), escaped(short))
    for kind, lines in blocks(text):
        if kind == "heading" and not lines[0].startswith("# "):
            level, title = lines[0].split(" ", 1)
            yield ".SH " + running(title.upper()) if level == "##" else ".SS " + running(title)
        elif kind == "code":
            yield ".PP\n.RS 4\n.nf"
            for line in lines:
                yield ("\\&" if line.startswith((".", "'")) else "") + escaped(line)
            yield ".fi\n.RE"
        elif kind == "table":
            yield from table(lines)
        elif kind == "item":
            mark, words = " ".join(lines).split(" ", 1)
            yield ".IP %s 3\n%s" % ("\\(bu" if mark == "-" else mark, running(words))
        elif kind == "text":
            yield ".PP\n" + running(" ".join(lines))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as page:
        lines = manual(page.read(), *sys.argv[2:])
    sys.stdout.reconfigure(encoding="utf-8")
    print("\n".join(lines))
