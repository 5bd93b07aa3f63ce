#!/usr/bin/env python3
"""Prints a pool's database as SQL. Before a release that changes the layout, save the dump of a
small pool of the last release as N.sql, N being its layout: migration_test opens each of them.

The sqlite3 program's .dump does not preserve texts that are not UTF-8, as in events and specs."""

import sqlite3
import sys


def literal(value):
    if not isinstance(value, bytes):
        return repr(value)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    if text.isprintable():
        return "'%s'" % text.replace("'", "''")
    return "cast(x'%s' as text)" % value.hex()


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__ + "\n\nUsage: dump.py DATABASE")
    database = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
    database.text_factory = bytes
    parts = database.execute("select type, name, sql from sqlite_master where sql is not null and "
                             "name not like 'sqlite_%' order by type desc, name").fetchall()
    for kind, name, sql in parts:
        print(sql.decode() + ";")
        if kind == b"table":
            for row in database.execute("select * from " + name.decode()):
                print("insert into %s values (%s);" % (name.decode(),
                                                       ", ".join(map(literal, row))))


if __name__ == "__main__":
    main()
