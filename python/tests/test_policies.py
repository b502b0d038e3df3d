"""A policy on the command line: what is accepted, and what each mistake is told."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from spillway.jax.errors import UserError
from spillway.jax.policies import complete_policy, names_with, parse_policy

KNOWN = ("query_proj", "key_proj", "mlpwi_0")


class ParsePolicy(unittest.TestCase):
    def test_accepted(self):
        rows = [
            ("nothing", [], {}),
            ("an empty text", [""], {}),
            ("one", ["a=keep"], {"a": "keep"}),
            ("several in one text", ["a=keep,b=offload"], {"a": "keep", "b": "offload"}),
            ("several texts", ["a=keep", "b=recompute"], {"a": "keep", "b": "recompute"}),
            ("blanks, a last comma", [" a = keep , "], {"a": "keep"}),
            ("the same twice", ["a=keep", "a=keep"], {"a": "keep"}),
        ]
        for name, texts, expected in rows:
            with self.subTest(name):
                self.assertEqual(parse_policy(texts), expected)

    def test_refused(self):
        rows = [
            ("a", "'a' is not name=choice, for example query_proj=offload"),
            ("=keep", "'=keep' is not name=choice, for example query_proj=offload"),
            ("a=host", "'host' is no choice for 'a': say keep, offload or recompute"),
            ("a=", "'' is no choice for 'a': say keep, offload or recompute"),
            ("a=keep=keep", "'keep=keep' is no choice for 'a': say keep, offload or recompute"),
            ("a=keep,a=offload", "'a' is given both keep and offload"),
        ]
        for text, message in rows:
            with self.subTest(text), self.assertRaises(UserError) as caught:
                parse_policy([text])
            self.assertEqual(str(caught.exception), message)
            self.assertEqual(caught.exception.exit_code, 2)


class CompletePolicy(unittest.TestCase):
    def test_a_missing_name_is_recomputed(self):
        self.assertEqual(
            complete_policy({"mlpwi_0": "offload"}, KNOWN),
            {"query_proj": "recompute", "key_proj": "recompute", "mlpwi_0": "offload"},
        )

    def test_an_unknown_name_is_refused(self):
        with self.assertRaises(UserError) as caught:
            complete_policy({"key_proj": "keep", "qeury_proj": "offload", "x": "keep"}, KNOWN)
        self.assertEqual(
            str(caught.exception),
            "the step has no checkpoint name 'qeury_proj', 'x'; "
            "it has query_proj, key_proj, mlpwi_0",
        )

    def test_names_with(self):
        policy = {"a": "keep", "b": "offload", "c": "keep", "d": "recompute"}
        self.assertEqual(names_with(policy, "keep"), ["a", "c"])
        self.assertEqual(names_with(policy, "offload"), ["b"])


if __name__ == "__main__":
    unittest.main()
