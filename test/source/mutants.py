"""Generates mutants of C and C++ sources: single lines with one change each. Pure
functions; the selection depends only on the seed and the sources."""

import collections
import random
import re

import arrows

ROOMS = ("server", "client", "scheduling", "protocol", "transport", "attempt")

# `line` counts from 1; `before` and `after` are whole lines without their indentation.
Mutant = collections.namedtuple("Mutant", "path line operator before after")

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])*\'',
                   re.S)
# The text before an opening brace, from the last ; { or }.
OUTER = re.compile(r'\b(namespace|extern)\b')
TYPE = re.compile(r"\b(class|struct|union|enum)\b[^()]*$")
FUNCTION = re.compile(r"\)\s*(const|noexcept|override|final|mutable|->\s*[\w:<>*&\s]+|\s)*"
                      r"(:\s*[\w:<>]+\s*[({].*)?$", re.S)
# Statements that are not mutated: log output and declarations without effect.
PASSED_OVER = re.compile(r"\b(log|trace|debug|warn)\s*\(|\bassert\s*\(|static_assert|\busing\b|"
                         r"\bfriend\b|\btemplate\b|\bdefault:|\[\[|#|\bcase\b|\boperator\b")
OPERAND = r"[\w.:\->\[\]']+(?:\([^()]*\))?"
SWAPS = {
    "relational": ((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "),
                   (" == ", " != "), (" != ", " == ")),
    "arithmetic": ((" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "),
                   (" % ", " / "), (" += ", " -= "), (" -= ", " += "), ("++", "--"),
                   (" & ", " | "), (" | ", " & ")),
    "boolean": ((" && ", " || "), (" || ", " && ")),
}


def hidden(text):
    """The text with comments and strings blanked out; columns and lines do not change."""
    def blank(match):
        word = match.group()
        if word.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", word)
        return word[0] + "~" * (len(word) - 2) + word[-1]
    return TOKEN.sub(blank, text)


def function_lines(code):
    """Numbers of the lines that start inside a function body. `code` comes from hidden()."""
    inside, kinds, since = set(), [], ""
    for number, line in enumerate(code.split("\n"), 1):
        if "function" in kinds:
            inside.add(number)
        if line.lstrip().startswith("#"):
            continue
        for character in line:
            if character == "{":
                kinds.append(opened(since, kinds))
                since = ""
            elif character == "}":
                kinds = kinds[:-1]
                since = ""
            elif character == ";":
                since = ""
            else:
                since += character
        since += "\n"
    return inside


def opened(since, kinds):
    if "function" in kinds:
        return "block"
    if TYPE.search(since):
        return "type"
    if OUTER.search(since):
        return "outer"
    return "function" if FUNCTION.search(since) else "data"


def statements_passed_over(lines):
    """Numbers of the lines of statements that are not mutated, up to the semicolon."""
    numbers, over = set(), False
    for number, line in enumerate(lines, 1):
        if over or PASSED_OVER.search(line):
            numbers.add(number)
            over = not re.search(r"[;{}:]\s*$", line)
    return numbers


def variants(line, code, previous=";"):
    """All mutants of a line as (operator, new line). `code` is hidden(line), `previous` the
    line of code before it."""
    found = []
    for operator, pairs in SWAPS.items():
        for old, new in pairs:
            for match in re.finditer(re.escape(old), code):
                found.append((operator, line[:match.start()] + new + line[match.end():]))
    found += constants(line, code) + negations(line, code) + returns(line, code) + \
        removed_terms(line, code)
    if re.search(r"[;{}:]\s*$|^\s*(\} )?(else|(else )?(if|for|while) \(.*\))\s*$", previous):
        found += deletions(line, code)
    return [(operator, new) for operator, new in found if new != line]


def constants(line, code):
    found = []
    if re.match(r"\s*(?:char|uint8_t|std::byte) \w+\[\d+\];", code):
        return []  # the size of a buffer is hardly ever visible
    for match in re.finditer(r"(?<![\w.'])(\d[\d']*)(?![\w.'])", code):
        value = int(match.group().replace("'", ""))
        for new in (value + 1, value - 1):
            if new >= 0:
                found.append(("constant", line[:match.start()] + str(new) + line[match.end():]))
    return found


def negations(line, code):
    found = []
    for match in re.finditer(r"\b(true|false)\b", code):
        other = "false" if match.group() == "true" else "true"
        found.append(("boolean", line[:match.start()] + other + line[match.end():]))
    match = re.search(r"\b(if|while) \((?!const |auto |[\w:]+[*&]? \w+ =)", code)
    end = closing(code, match.end() - 1) if match else None
    if end:
        found.append(("boolean", "%s!(%s)%s" % (line[:match.end()], line[match.end():end],
                                                line[end:])))
    return found


def returns(line, code):
    found = []
    for start in re.finditer(r"\breturn (?!(?:\{\}|0|false|nullptr|std::nullopt);)", code):
        value = code[start.end():].split(";")[0]
        if ";" in code[start.end():] and value.count("{") == value.count("}"):
            found.append(("return value", line[:start.end()] + "{}" +
                          line[start.end() + len(value):]))
    return found


def deletions(line, code):
    """Deletes a call or assignment that is a whole line."""
    if re.match(r"\s*(?:[\w:.\->\[\]()*]+\s*(?:[-+|&]?=|<<)\s|[\w:.\->]+\(|\+\+|--)[^{}]*;\s*$",
                code) and not re.match(r"\s*(return|throw|if|for|while|else)\b", code):
        return [("deleted statement", re.match(r"\s*", line).group() + "{}")]
    return []


def removed_terms(line, code):
    found = []
    for match in re.finditer(r" [-+] %s(?=[ ;,)])" % OPERAND, code):
        found.append(("removed term", line[:match.start()] + line[match.end():]))
    for match in re.finditer(r"(?<=[(! ])%s [-+] " % OPERAND, code):
        found.append(("removed term", line[:match.start()] + line[match.end():]))
    for match in re.finditer(r" (&&|\|\|) ", code):
        end = term_end(code, match.end())
        if end:
            found.append(("removed term", line[:match.start()] + line[end:]))
    return found


def closing(code, at):
    """Index of the parenthesis that closes the one at `at`; None if not on this line."""
    depth = 0
    for place in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return None


def term_end(code, at):
    """Index of the end of the term that starts at `at`; None if not on this line."""
    depth = 0
    for place in range(at, len(code)):
        if depth == 0 and (code[place] in ");,?" or code.startswith((" && ", " || "), place)):
            return place if place > at else None
        depth += {"(": 1, ")": -1}.get(code[place], 0)
    return None


def of_file(path, text):
    """Returns line number -> mutants."""
    code = hidden(text)
    lines, codes = text.split("\n"), code.split("\n")
    passed_over = statements_passed_over(codes)
    found, previous = {}, ";"
    for number in sorted(function_lines(code)):
        earlier, previous = previous, codes[number - 1] if codes[number - 1].strip() else previous
        if number in passed_over or codes[number - 1].strip() in ("", "{", "}"):
            continue
        before = lines[number - 1].strip()
        mutants = [Mutant(path, number, operator, before, new.strip())
                   for operator, new in variants(lines[number - 1], codes[number - 1], earlier)]
        if mutants:
            found[number] = mutants
    return found


def eligible(path, rooms=ROOMS):
    return path.split("/")[0] in rooms and path.endswith((".cc", ".c", ".h")) and \
        not arrows.is_test(path)


def pick(files, seed, rooms=ROOMS):
    """Yields one mutant of each eligible line, in random order. The operator is drawn first,
    so that operators with many variants are not preferred."""
    generator = random.Random(seed)
    lines = []
    for path in sorted(files):
        if eligible(path, rooms):
            lines += sorted(of_file(path, files[path]).items())
    generator.shuffle(lines)
    for _, mutants in lines:
        operator = generator.choice(sorted({mutant.operator for mutant in mutants}))
        yield generator.choice([mutant for mutant in mutants if mutant.operator == operator])


def read_list(text):
    """The mutants in the output of `mutations.py --list`."""
    found = re.findall(r"^\d+: (\S+):(\d+) (.*)\n  - (.*)\n  \+ (.*)$", text, re.M)
    return [Mutant(path, int(line), *rest) for path, line, *rest in found]


def moved(mutant, text):
    """The mutant at the nearest line that still reads like its own; None if there is none."""
    lines = [number for number, line in enumerate(text.split("\n"), 1)
             if line.strip() == mutant.before]
    nearest = min(lines, key=lambda number: abs(number - mutant.line), default=None)
    return mutant._replace(line=nearest) if nearest else None


def applied(text, mutant):
    """Returns the text with the mutant applied."""
    lines = text.split("\n")
    line = lines[mutant.line - 1]
    if line.strip() != mutant.before:
        raise ValueError("%s:%d has changed" % (mutant.path, mutant.line))
    lines[mutant.line - 1] = line[:len(line) - len(line.lstrip())] + mutant.after
    return "\n".join(lines)


def read_equivalents(text):
    """Returns (path, before, after) -> reason. Each block has the path, `- ` the line, `+ ` the
    mutant, and the reason why both behave alike."""
    found = {}
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.strip().split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        if len(lines) < 4 or not lines[1].startswith("- ") or not lines[2].startswith("+ "):
            raise ValueError("incomplete block (path, line, mutant, reason): " + lines[0])
        found[lines[0], lines[1][2:].strip(), lines[2][2:].strip()] = " ".join(lines[3:])
    return found
