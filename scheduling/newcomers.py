"""Takes the policies that docs/policies.md writes as examples in among the others, as that page
says: one file each, and one line in the list of known ones.

usage: newcomers.py PAGE SOURCES OUT

SOURCES: the folder with job_policies.cc and machine_policies.cc; in OUT there are then those with
the newcomers, and the newcomers."""

import os
import re
import sys

MOST_LINES = 100
LAST_ENTRY = re.compile(r"^(.*\{\"[a-z0-9-]+\", make<\w+>\},\n)(\};)", re.MULTILINE)


def main(page, sources, out):
    with open(page) as f:
        blocks = re.findall(r"^```cpp\n(.*?)^```$", f.read(), re.DOTALL | re.MULTILINE)
    classes = [block for block in blocks if block.startswith('// "')]
    lines = [block for block in blocks if not block.startswith('// "')]
    for source, (code, line) in zip(("job_policies.cc", "machine_policies.cc"),
                                    zip(classes, lines, strict=True), strict=True):
        assert code.count("\n") < MOST_LINES, "an example of %s is too long" % page
        assert line.endswith("// in %s\n" % source) and line.count("\n") == 1, line
        header = re.match(r'// "([a-z-]+)"', code).group(1).replace("-", "_") + ".h"
        with open(os.path.join(out, header), "w") as f:
            f.write(code)
        with open(os.path.join(sources, source)) as f:
            known, count = LAST_ENTRY.subn(lambda m: m.group(1) + line + m.group(2), f.read())
        assert count == 1, source
        with open(os.path.join(out, source), "w") as f:
            f.write('#include "%s"\n' % header + known)


if __name__ == "__main__":
    main(*sys.argv[1:])
