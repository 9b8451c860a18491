#!/usr/bin/python3
"""`megalith generate` from end to end: a tiny model learns one text by heart and is asked to go on with it.

    program_test.py MEGALITH [UNITTEST ARGUMENT...]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

# Every few characters tell where one is in it, so that a good model has one way to go on.
TEXT = ('Once a small 🦊 met an old 🐻‍❄️ by the river. "Where do you go?" asked the fox; "To the café, naïve one", said the '
        "bear.\nThey drank 茶 and ate 3 cakes (1 each, 1 shared), then walked home under 🌕🌟, singing quietly.\n")
CONTEXT = 128
program = ""
folder = None


def run(*arguments, status=0, **options):
    words = [word if isinstance(word, bytes) else str(word) for word in arguments]
    done = subprocess.run([program, *words], capture_output=True, timeout=120, **options)
    if done.returncode != status:
        raise AssertionError(f"{arguments}: status {done.returncode}, expected {status}\n{done.stderr.decode()}")
    return done


def at(name):
    return os.path.join(folder.name, name)


def write(name, content):
    with open(at(name), "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
    return at(name)


def generate(*arguments, status=0, **options):
    return run("generate", "--load", at("run"), "--num-threads", 1, *arguments, status=status, **options)


def rows(*arguments):
    return [json.loads(line) for line in generate("--json", *arguments).stdout.decode().splitlines()]


def texts(*arguments):
    return [row["text"] for row in rows(*arguments)]


def setUpModule():
    global folder
    folder = tempfile.TemporaryDirectory()
    write("one.txt", TEXT)
    write("corpus.txt", TEXT * 40)
    run("tokenizer", "train", "--input", at("one.txt"), "--vocab-size", 265, "--output", at("tokenizer"))
    tokenizer = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", at("tokenizer")]
    run("data", "prepare", "--input", at("corpus.txt"), "--input-format", "text", "--output-prefix", at("corpus"), *tokenizer)
    run("train", "--num-layers", 2, "--hidden-size", 64, "--num-attention-heads", 4, "--seq-length", 96,
        "--max-position-embeddings", CONTEXT, "--micro-batch-size", 8, "--train-iters", 400, "--save-interval", 200, "--lr", 4e-3,
        "--lr-warmup-iters", 10, "--lr-decay-style", "cosine", "--hidden-dropout", 0, "--attention-dropout", 0, "--clip-grad", 1,
        "--data-path", at("corpus_text_document"), "--split", "1,0,0", *tokenizer, "--num-threads", 1, "--no-progress",
        "--no-tensorboard", "--save", at("run"))


def tearDownModule():
    folder.cleanup()


def follows(prompt):
    """The text after the prompt's first place, from there on around."""
    endless = TEXT * 3
    return endless[endless.index(prompt) + len(prompt):]


class Memorised(unittest.TestCase):
    PROMPTS = ["Once a small", "met an old", "asked the fox;", "They drank", "ate 3 cakes (1", " then walked home under"]

    def test_greedy_text_is_the_text_it_learned(self):
        for prompt, row in zip(self.PROMPTS, rows("--greedy", "--max-new-tokens", 60, "--prompt", *self.PROMPTS)):
            self.assertEqual(row["prompt"], prompt)
            self.assertTrue(follows(prompt).startswith(row["text"]), row)
            self.assertGreater(len(row["text"]), 30)
            self.assertEqual((row["new_tokens"], row["stop_reason"]), (60, "length"))

    def test_a_batch_equals_single_prompts(self):
        together = texts("--greedy", "--max-new-tokens", 40, "--prompt", *self.PROMPTS)
        self.assertEqual([texts("--greedy", "--max-new-tokens", 40, "--prompt", prompt)[0] for prompt in self.PROMPTS], together)
        for size in (1, 2, 5):
            self.assertEqual(texts("--greedy", "--max-new-tokens", 40, "--micro-batch-size", size, "--prompt", *self.PROMPTS),
                             together)

    def test_the_other_device_and_the_config_flags_of_the_checkpoint_say_the_same(self):
        flags = ["--greedy", "--max-new-tokens", 25, "--prompt", self.PROMPTS[0]]
        here = texts(*flags)
        self.assertEqual(texts("--device", "reference", *flags), here)
        self.assertEqual(texts("--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", at("tokenizer"), *flags), here)
        self.assertEqual(texts("--ckpt-step", 400, *flags), here)
        self.assertTrue(texts("--bf16", *flags)[0])
        older = run("generate", "--load", at("run/iter_0000200"), "--num-threads", 1, *flags)
        self.assertIn(b"iteration 200", older.stderr)

    def test_a_full_context_ends_a_continuation(self):
        (row,) = rows("--greedy", "--max-new-tokens", 1000, "--prompt", "Once a small")
        self.assertEqual(row["stop_reason"], "context_full")
        self.assertLessEqual(row["prompt_tokens"] + row["new_tokens"], CONTEXT + 1)
        self.assertGreaterEqual(row["prompt_tokens"] + row["new_tokens"], CONTEXT)
        done = generate("--greedy", "--prompt", "short", TEXT, status=2)
        self.assertIn(b"prompt 2 has", done.stderr)
        self.assertEqual(done.stdout, b"")

    def test_no_new_tokens(self):
        self.assertEqual(texts("--max-new-tokens", 0, "--prompt", "Once"), [""])


class Output(unittest.TestCase):
    def test_one_prompt_streams_text_and_nothing_else(self):
        done = generate("--greedy", "--max-new-tokens", 30, "--prompt", "Once a small")
        new = texts("--greedy", "--max-new-tokens", 30, "--prompt", "Once a small")[0]
        self.assertEqual(done.stdout.decode(), "Once a small" + new + "\n")
        done = generate("--greedy", "--max-new-tokens", 30, "--no-echo", "--prompt", "Once a small")
        self.assertEqual(done.stdout.decode(), new + "\n")

    def test_several_prompts_have_headings(self):
        done = generate("--greedy", "--max-new-tokens", 8, "--prompt", "Once a small", "They drank")
        first, second = texts("--greedy", "--max-new-tokens", 8, "--prompt", "Once a small", "They drank")
        self.assertEqual(done.stdout.decode(), f"=== 1 ===\nOnce a small{first}\n\n=== 2 ===\nThey drank{second}\n")

    def test_never_half_a_character(self):
        # The emoji are several tokens long: every length ends somewhere, often inside one.
        prompt = "then walked home under"
        cut = 0
        for length in range(1, 13):
            done = generate("--greedy", "--max-new-tokens", length, "--no-echo", "--prompt", prompt)
            text = done.stdout.decode()  # strict
            self.assertTrue(follows(prompt).startswith(text[:-1]), text)
            (row,) = rows("--greedy", "--max-new-tokens", length, "--prompt", prompt)
            self.assertEqual(row["text"] + "\n", text)
            self.assertEqual(row["new_tokens"], length)
            self.assertNotIn("\ufffd", row["text"])
            encoded = run("tokenizer", "encode", "--tokenizer-model", at("tokenizer"), "--format", "json", "--text", row["text"])
            cut += len(json.loads(encoded.stdout)) < length
        self.assertGreater(cut, 1, "no length ended inside a character: the test shows nothing")

    def test_pieces_of_the_stream_are_whole_characters(self):
        child = subprocess.Popen([program, "generate", "--load", at("run"), "--num-threads", "1", "--greedy", "--max-new-tokens",
                                  "60", "--prompt", "then walked home"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        pieces = []
        while piece := os.read(child.stdout.fileno(), 1 << 16):
            pieces.append(piece.decode())  # strict: a read that ends inside a character would fail
        child.stdout.close()
        self.assertEqual(child.wait(), 0)
        self.assertIn("🌕🌟", "".join(pieces))

    def test_json_holds_any_prompt(self):
        prompts = ['quotes " and \\ and \t', "two\nlines", "🐻‍❄️茶", " ", "é"]
        for prompt, row in zip(prompts, rows("--greedy", "--max-new-tokens", 3, "--prompt", *prompts), strict=True):
            self.assertEqual(row["prompt"], prompt)
            self.assertEqual(set(row), {"prompt", "text", "prompt_tokens", "new_tokens", "stop_reason"})
            encoded = run("tokenizer", "encode", "--tokenizer-model", at("tokenizer"), "--format", "json", "--text", prompt)
            self.assertEqual(row["prompt_tokens"], len(json.loads(encoded.stdout)))
        done = generate("--json", "--greedy", "--max-new-tokens", 3, "--prompt", b"broken \xff\xe2\x82 bytes")
        self.assertEqual(json.loads(done.stdout.decode())["prompt"], "broken \ufffd\ufffd bytes")


class Sampling(unittest.TestCase):
    def test_seeds_reproduce_and_differ(self):
        flags = ["--temperature", 3, "--max-new-tokens", 30, "--prompt", "Once a small", "They drank", "asked"]
        first = texts("--seed", 5, *flags)
        self.assertEqual(texts("--seed", 5, *flags), first)
        self.assertEqual(texts("--seed", 5, "--micro-batch-size", 1, *flags), first)
        self.assertEqual(texts("--seed", 5, *flags[:-2])[0], first[0])
        self.assertNotEqual(texts("--seed", 6, *flags), first)
        same = texts("--temperature", 3, "--max-new-tokens", 30, "--prompt", "Once a small", "Once a small")
        self.assertNotEqual(*same)

    def test_limits_that_leave_one_token_are_greedy(self):
        flags = ["--max-new-tokens", 30, "--prompt", "Once a small"]
        greedy = texts("--greedy", *flags)
        for limit in (["--top-k", 1, "--temperature", 5], ["--top-p", 1e-6, "--temperature", 5], ["--temperature", 0],
                      ["--temperature", 0.01]):
            self.assertEqual(texts(*limit, *flags), greedy, limit)
        self.assertNotEqual(texts("--temperature", 5, *flags), greedy)

    def test_cutting_the_tail_tames_a_high_temperature(self):
        def wrong(*limit):
            prompts = ["Once a small"] * 10
            learned = follows("Once a small")
            return sum(not learned.startswith(text) for text in texts("--temperature", 2, "--max-new-tokens", 12, *limit,
                                                                      "--prompt", *prompts))
        free = wrong()
        self.assertGreater(free, 0)
        self.assertLess(wrong("--top-p", 0.5), free)

    def test_values_that_make_no_sense_are_refused(self):
        for flags in (["--top-p", 0], ["--top-p", 1.5], ["--temperature", -1], ["--top-k", -1], ["--max-new-tokens", -1]):
            done = generate(*flags, "--prompt", "Once", status=2)
            self.assertIn(flags[0][2:].replace("-", "_"), done.stderr.decode().replace("-", "_"))
        generate(status=2)
        generate("--prompt", "a", "--prompt-file", "b", status=2)


class Stops(unittest.TestCase):
    def test_stop_strings_end_and_are_not_shown(self):
        prompt = "asked the fox; "
        for stops in (["naïve"], ["ï"], ["never there", ", na", "said"], ["one\","]):
            (row,) = rows("--greedy", "--max-new-tokens", 60, "--stop", *stops, "--prompt", prompt)
            rest = follows(prompt)
            self.assertEqual(row["text"], rest[:min(rest.index(stop) for stop in stops if stop in rest)])
            self.assertEqual(row["stop_reason"], "stop_string")
        (row,) = rows("--greedy", "--max-new-tokens", 20, "--stop", "never there", "--prompt", prompt)
        self.assertEqual(row["stop_reason"], "length")

    def test_a_stop_string_of_an_emoji_and_across_lines(self):
        done = generate("--greedy", "--max-new-tokens", 60, "--stop", "🌟", "--no-echo", "--prompt", "then walked home under")
        self.assertEqual(done.stdout.decode(), " 🌕\n")
        done = generate("--greedy", "--max-new-tokens", 60, "--stop", ".\nThey", "--no-echo", "--prompt", '", said the')
        self.assertEqual(done.stdout.decode(), " bear\n")

    def test_each_prompt_of_a_batch_stops_for_itself(self):
        found = rows("--greedy", "--max-new-tokens", 40, "--stop", "river", "each", "--prompt", "Once a small", "They drank",
                     " one\", said")
        self.assertEqual([row["stop_reason"] for row in found][:2], ["stop_string", "stop_string"])
        self.assertTrue(found[0]["text"].endswith("by the "))
        self.assertTrue(found[1]["text"].endswith("(1 "))


class PromptFiles(unittest.TestCase):
    FLAGS = ["--greedy", "--max-new-tokens", 10]

    def test_all_formats_say_the_same(self):
        prompts = ["Once a small 🦊", "They drank", "asked the fox; \"To"]
        expected = rows(*self.FLAGS, "--prompt", *prompts)
        lines = write("a.txt", "\n".join(prompts))
        windows = write("b.txt", "".join(prompt + "\r\n" for prompt in prompts) + "\r\n\r\n")
        objects = write("c.jsonl", "".join(json.dumps(dict(prompt=prompt, text="ignored")) + "\n" for prompt in prompts))
        corpus = write("d.jsonl", "\n\n".join(json.dumps(dict(text=prompt), ensure_ascii=False) for prompt in prompts))
        strings = write("e.json", "".join(json.dumps(prompt) + "\n" for prompt in prompts))
        for path in (lines, windows, objects, corpus, strings):
            self.assertEqual(rows(*self.FLAGS, "--prompt-file", path), expected, path)

    def test_a_json_prompt_may_span_lines(self):
        path = write("f.jsonl", json.dumps(dict(prompt="the bear.\nThey")))
        self.assertEqual(rows(*self.FLAGS, "--prompt-file", path)[0]["prompt"], "the bear.\nThey")

    def test_what_is_wrong_is_named(self):
        for name, content, message in (("g.jsonl", '{"prompt": "a"}\n{"prompt": 3}\n', "g.jsonl:2"),
                                       ("h.jsonl", '{"prompt": "a"\n', "h.jsonl:1"), ("i.jsonl", "[1]\n", "i.jsonl:1"),
                                       ("j.txt", "\n\n", "j.txt"), ("k.jsonl", b'{"prompt": "\xff"}\n', "k.jsonl:1")):
            done = generate("--prompt-file", write(name, content), status=3)
            self.assertIn(message, done.stderr.decode())
        self.assertIn(b"absent.txt", generate("--prompt-file", at("absent.txt"), status=3).stderr)


class Models(unittest.TestCase):
    def test_what_cannot_be_loaded_is_named(self):
        run("generate", "--load", at("nothing"), "--prompt", "a", status=3)
        self.assertIn(b"300", generate("--ckpt-step", 300, "--prompt", "a", status=3).stderr)
        run("tokenizer", "train", "--input", at("one.txt"), "--vocab-size", 260, "--output", at("other"))
        done = generate("--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", at("other"), "--prompt", "a", status=3)
        self.assertIn(b"tokenizer", done.stderr)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
