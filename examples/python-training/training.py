"""Trains a network to recognize letters, with NumPy: the network of ../back-propagation, in small
batches of rows. Everything that decides the result is in the checkpoint: the weights, the step and
the random generator. All output is printed at the end, so that the last attempt of an interrupted
run prints the same as an uninterrupted run. Exit status: 0, 1 (failed), 2 (bad command line), 75
(saved and left because asked to)."""

import argparse
import hashlib
import sys

import numpy

from sublet import checkpoint

INPUTS, HIDDEN, CLASSES = 16, 55, 26
TRAINING_ROWS, ROWS = 16000, 20000
BATCH = 50
RATE = 4.0
LAYOUT = 1  # increase it when the meaning of a saved part changes


def read_letters(path):
    """Inputs from about -0.94 to 0.94, and classes from 0."""
    with open(path) as f:
        rows = [line.strip().split(",") for line in f]
    if len(rows) != ROWS:
        raise ValueError("%s has %d rows, not %d" % (path, len(rows), ROWS))
    inputs = (numpy.array([row[1:] for row in rows], dtype=float) - 7.5) / 8
    return inputs, numpy.array([ord(row[0]) - ord("A") for row in rows])


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


class Network:
    """Two layers of weights, the bias in the first row of each."""

    def __init__(self, random):
        self.first = random.uniform(-0.5, 0.5, (INPUTS + 1, HIDDEN))
        self.second = random.uniform(-0.5, 0.5, (HIDDEN + 1, CLASSES))

    def forward(self, inputs):
        hidden = sigmoid(inputs @ self.first[1:] + self.first[0])
        return hidden, sigmoid(hidden @ self.second[1:] + self.second[0])

    def train(self, inputs, letters):
        """One gradient step on the squared error of these rows."""
        hidden, outputs = self.forward(inputs)
        errors = (numpy.eye(CLASSES)[letters] - outputs) * outputs * (1 - outputs)
        hidden_errors = (errors @ self.second[1:].T) * hidden * (1 - hidden)
        for weights, values, change in ((self.second, hidden, errors),
                                        (self.first, inputs, hidden_errors)):
            weights[0] += RATE / BATCH * change.sum(axis=0)
            weights[1:] += RATE / BATCH * (values.T @ change)

    def correct(self, inputs, letters):
        return int((self.forward(inputs)[1].argmax(axis=1) == letters).sum())


def run(options):
    random = numpy.random.default_rng(options.seed)
    network = Network(random)
    # Before reading the letters: from here on it can be asked to leave.
    with checkpoint.open("python-training", LAYOUT, path=options.checkpoint) as c:
        c.array("first", network.first)
        c.array("second", network.second)
        c.generator("random", random)
        if c.value("seed", options.seed).value != options.seed:
            raise ValueError("the checkpoint was made with another --seed")
        steps = c.range("step", options.epochs * TRAINING_ROWS // BATCH)
        inputs, letters = read_letters(options.data)
        for step in steps:  # the head of each pass is a safe point
            rows = random.integers(0, TRAINING_ROWS, BATCH)
            network.train(inputs[rows], letters[rows])
            c.progress(step + 1, options.epochs * TRAINING_ROWS // BATCH)
        report(options, network, inputs, letters)


def report(options, network, inputs, letters):
    weights = network.first.tobytes() + network.second.tobytes()
    if options.weights:
        with open(options.weights, "wb") as f:
            f.write(weights)
    print("epochs %d" % options.epochs)
    for name, part in (("training", slice(TRAINING_ROWS)), ("test", slice(TRAINING_ROWS, ROWS))):
        right, rows = network.correct(inputs[part], letters[part]), len(letters[part])
        print("%s correctness %.3f (%d of %d)" % (name, right / rows, right, rows))
    print("weights %s" % hashlib.sha256(weights).hexdigest()[:16], flush=True)


def main():
    parser = argparse.ArgumentParser(description="Trains a network to recognize letters.")
    parser.add_argument("--data", metavar="FILE", required=True, help="the letters")
    parser.add_argument("--epochs", metavar="N", type=int, default=10,
                        help="passes over as many rows as there are to train (default: 10)")
    parser.add_argument("--seed", metavar="N", type=int, default=1)
    parser.add_argument("--weights", metavar="FILE", help="write the final weights")
    parser.add_argument("--checkpoint", metavar="FILE", help="where to save without a pool")
    options = parser.parse_args()
    if options.epochs < 0 or options.seed < 0:
        parser.error("--epochs and --seed are at least 0")
    try:
        run(options)
    except (checkpoint.CheckpointRefused, OSError, ValueError) as error:
        sys.exit("training.py: %s" % error)


if __name__ == "__main__":
    main()
