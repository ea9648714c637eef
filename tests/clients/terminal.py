"""A terminal for programs that draw on one: a pty, and the little of a VT100 that they use.

    terminal.py 80x24 PROGRAM ARGUMENTS…

Each line on standard input is a JSON object: {"type": "keys"} types, {"size": [100, 30]} resizes, {"signal": 15} sends the
program a signal, {} only looks. The answer to each is one line: what the screen shows, what was copied into its clipboard,
and how the terminal stands. As a module it makes the pictures of the documentation (docs/images/make).
"""
import base64
import codecs
import fcntl
import json
import os
import re
import select
import struct
import subprocess
import sys
import termios
import unicodedata

PLAIN = {"fg": None, "bold": False, "dim": False, "reverse": False}


class Screen:
    """Cells, and the sequences that change them. What is not known is left out."""

    SEQUENCE = re.compile(r"\x1b\[([?>]?)([0-9;]*)([@-~])|\x1b\](.*?)(?:\x07|\x1b\\)|\x1b[()].|\x1b[=>78cDM]", re.S)

    def __init__(self, width, height):
        self.resize(width, height)
        self.copied, self.alternate, self.cursor, self.rest = [], False, True, ""
        self.style, self.kept = dict(PLAIN), None

    def resize(self, width, height):
        self.width, self.height, self.x, self.y = width, height, 0, 0
        self.cells = [self.blank() for _ in range(height)]

    def blank(self):
        return [(" ", dict(PLAIN)) for _ in range(self.width)]

    def lines(self):
        return ["".join(cell[0] for cell in line).rstrip() for line in self.cells]

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = self.SEQUENCE.match(text, at)
                if not found:
                    # The end of it has not come yet.
                    self.rest = text[at:]
                    return
                self.obey(found)
                at = found.end()
            else:
                self.put(text[at])
                at += 1

    def put(self, letter):
        if letter == "\r":
            self.x = 0
        elif letter == "\n":
            self.newline()
        elif letter == "\b":
            self.x = max(0, self.x - 1)
        elif letter == "\t":
            self.x = min(self.width - 1, self.x // 8 * 8 + 8)
        elif ord(letter) >= 32 and not unicodedata.combining(letter):
            wide = unicodedata.east_asian_width(letter) in "WF"
            if self.x + wide >= self.width:
                self.x = 0
                self.newline()
            self.cells[self.y][self.x] = (letter, dict(self.style))
            if wide:
                self.cells[self.y][self.x + 1] = ("", dict(self.style))
            self.x += 1 + wide

    def newline(self):
        if self.y + 1 < self.height:
            self.y += 1
        else:
            self.cells = self.cells[1:] + [self.blank()]

    def obey(self, found):
        private, numbers, final, system = found.groups()
        if system is not None:
            kind, _, rest = system.partition(";")
            if kind == "52":
                self.copied.append(base64.b64decode(rest.partition(";")[2]).decode())
            return
        if final is None:
            return
        given = [int(number) if number else 0 for number in numbers.split(";")]
        if private == "?":
            self.mode(given, final == "h")
        elif final == "m":
            self.paint(given)
        elif final in "Hf":
            row, column = (given + [1])[:2]
            self.y, self.x = min(max(row, 1), self.height) - 1, min(max(column, 1), self.width) - 1
        elif final == "J":
            self.erase(given[0])
        elif final == "K":
            start, end = [(self.x, self.width), (0, self.x + 1), (0, self.width)][given[0]]
            self.cells[self.y][start:end] = self.blank()[start:end]
        elif final in "ABCD":
            dx, dy = {"A": (0, -1), "B": (0, 1), "C": (1, 0), "D": (-1, 0)}[final]
            steps = max(given[0], 1)
            self.x = min(max(self.x + dx * steps, 0), self.width - 1)
            self.y = min(max(self.y + dy * steps, 0), self.height - 1)

    def mode(self, given, on):
        if 25 in given:
            self.cursor = on
        if 1049 in given and on != self.alternate:
            self.alternate = on
            if on:
                self.kept = (self.cells, self.x, self.y)
                self.cells = [self.blank() for _ in range(self.height)]
            else:
                self.cells, self.x, self.y = self.kept

    def erase(self, what):
        if what in (2, 3):
            self.cells = [self.blank() for _ in range(self.height)]
        elif what == 0:
            self.cells[self.y][self.x:] = self.blank()[self.x:]
            self.cells[self.y + 1:] = [self.blank() for _ in self.cells[self.y + 1:]]

    def paint(self, given):
        given = list(given)
        while given:
            number = given.pop(0)
            if number == 0:
                self.style = dict(PLAIN)
            elif number in (1, 2, 7):
                self.style[{1: "bold", 2: "dim", 7: "reverse"}[number]] = True
            elif number == 22:
                self.style["bold"] = self.style["dim"] = False
            elif number == 27:
                self.style["reverse"] = False
            elif 30 <= number <= 37:
                self.style["fg"] = number - 30
            elif number == 39:
                self.style["fg"] = None
            elif number in (38, 48, 58) and given:
                taken, given = (given[1:2], given[2:]) if given[0] == 5 else (given[1:4], given[4:])
                if number == 38 and len(taken) == 1:
                    self.style["fg"] = taken[0]


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, width, height, command, env=None, cwd=None):
        self.screen = Screen(width, height)
        # A letter may come in two parts.
        self.letters = codecs.getincrementaldecoder("utf-8")("replace")
        self.master, self.slave = os.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(self.slave)

        def lead():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.program = subprocess.Popen(command, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=env, cwd=cwd,
                                        start_new_session=True, preexec_fn=lead)

    def resize(self, width, height):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.screen.resize(width, height)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def read(self, seconds=0.05):
        """Takes what the program writes until it is silent for so long."""
        while select.select([self.master], [], [], seconds)[0]:
            self.screen.feed(self.letters.decode(os.read(self.master, 65536)))

    def ended(self):
        return self.program.poll()

    def cooked(self):
        """Whether keys are echoed and lines edited, as before the program."""
        flags = termios.ECHO | termios.ICANON | termios.ISIG
        return termios.tcgetattr(self.slave)[3] & flags == self.before[3] & flags


def main():
    width, height = (int(number) for number in sys.argv[1].split("x"))
    terminal = Terminal(width, height, sys.argv[2:])
    screen = terminal.screen
    try:
        while select.select([sys.stdin, terminal.master], [], []):
            terminal.read(0.01)
            if not select.select([sys.stdin], [], [], 0)[0]:
                continue
            line = sys.stdin.readline()
            if not line:
                break
            asked = json.loads(line)
            if "type" in asked:
                terminal.type(asked["type"])
            if "size" in asked:
                terminal.resize(*asked["size"])
            if "signal" in asked:
                terminal.program.send_signal(asked["signal"])
            # Read after the end was seen: what it wrote last is part of it.
            ended = terminal.ended()
            terminal.read()
            said = {"lines": screen.lines(), "copied": screen.copied, "alternate": screen.alternate,
                    "coloured": any(style["fg"] is not None for line in screen.cells for _, style in line),
                    "cursor": screen.cursor, "cooked": terminal.cooked(), "ended": ended}
            print(json.dumps(said), flush=True)
    finally:
        if terminal.ended() is None:
            terminal.program.kill()
            terminal.program.wait()


if __name__ == "__main__":
    main()
