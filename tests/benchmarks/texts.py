"""Invented prose, code and tool output, with the characters that real logs have."""

from __future__ import annotations

import random

_VOCABULARY = (
    "the a to of and in is it that for this with on not be as are we now which when file test value cache route "
    "handler session request response parser index query schema column worker thread socket token branch commit "
    "module import function argument default option failing passes returns raises checks reads writes skips keeps "
    "first last next empty missing wrong slow fast same other only also because instead before after between line "
    "error timeout retry buffer stream record message result config folder path user server client build step"
)
_WORDS = _VOCABULARY.split()
_ACCENTED = ("naïve", "café", "Übergabe", "déjà vu", "São Paulo", "Łódź", "résumé", "größer", "señal")
_CJK = (
    "这个函数返回缓存的结果。",
    "設定ファイルを読み込みます。",
    "테스트가 통과했습니다.",
    "注意：路径不能为空，否则会报错。",
)
_EMOJI = ("✅", "❌", "🚀", "🎉", "⚠️", "🔧", "👍")
_FLAVOURS = {"": 82, "dashes": 10, "accents": 3, "emoji": 4, "cjk": 1}
"""What characters beyond ASCII a text has, and how many texts of a hundred."""
_NAMES = ("app", "server", "routes", "models", "cache", "parser", "index", "config", "utils", "worker", "store", "cli")
_FOLDERS = ("src", "lib", "tests", "packages/core", "packages/ui", "internal/sync", "docs", "scripts")
_ENDINGS = (".py", ".ts", ".tsx", ".go", ".rs", ".md", ".json", ".sql")

_CODE = (
    "def {a}_{b}({a}: str, {b}: int = {n}) -> dict[str, int]:",
    '    """Return the {a} of the {b}, or raise "{a} missing"."""',
    '    pattern = re.compile(r"\\b{a}\\s+(\\d+)\\n")',
    '    if {a} is None or {b} == "{a}":',
    '        raise ValueError(f"{a}: {{{b}!r}} is not a {b}")',
    "    return {{key: value for key, value in {a}.items() if value > {n}}}",
    'export const {a}{n} = async ({b}: string): Promise<Record<string, "{a}" | null>> => {{',
    "  const {b} = await fetch(`/api/{a}/${{{b}}}?limit={n}`, {{ method: 'POST' }});",
    '  console.log("{a}\\t{b}\\n", {b}.status); // {a} is checked before {b}',
    "  return {a}.map((item) => ({{ ...item, {b}: item.{b} ?? {n} }}));",
    "}};",
    "",
    "func (s *{a}) {b}(ctx context.Context) (*{a}, error) {{",
    '\tif err := s.{b}(ctx, "{a}", {n}); err != nil {{',
    '\t\treturn nil, fmt.Errorf("{a} {b}: %w\\n", err)',
    "\t}}",
)
_LOG = (
    "tests/test_{a}.py::test_{a}_{b} PASSED                                    [ {n}%]",
    "-rw-r--r--  1 ada  staff  {n}{n} Mar  3 12:{m} {a}_{b}.py",
    "2026-02-{d}T09:{m}:21.{n}Z INFO  [{a}] {b} took {n} ms (hits={n}, misses={m})",
    '{{"level":"warn","module":"{a}","msg":"{b} \\"retry\\" after {n} ms","path":"C:\\\\srv\\\\{a}\\\\{b}.json"}}',
    "diff --git a/src/{a}.py b/src/{a}.py",
    "@@ -{n},{m} +{n},{m} @@ def {a}_{b}(value):",
    '-    return {a}["{b}"]',
    '+    return {a}.get("{b}", {n})',
    "     ",
    "\x1b[32m✓\x1b[0m {a} {b} \x1b[2m({n}ms)\x1b[0m",
    "src/{a}/{b}.ts:{n}:{m}: error TS2345: Argument of type 'string' is not assignable to '{a}'.",
    "  at {a}.{b} (/srv/demo/node_modules/{a}/dist/index.js:{n}:{m})",
    "drwxr-xr-x 12 ada staff 384 {a} -> ../{b}",
    "remote: Counting objects: {n}, done.",
)


class Texts:
    """Chunks are made once; texts of any length are then put together from them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._prose = {flavour: [self._paragraph(flavour) for _ in range(400)] for flavour in _FLAVOURS}
        self._code = [self._lines(_CODE, 14) for _ in range(400)]
        self._log = [self._lines(_LOG, 16) for _ in range(400)]
        self._opaque = "".join(
            rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", k=1 << 20)
        )

    def size(self, median: float, sigma: float = 0.9, most: int = 400_000) -> int:
        """A length with a long tail."""
        return min(most, max(8, int(median * self.rng.lognormvariate(0, sigma))))

    def words(self, count: int) -> str:
        return " ".join(self.rng.choices(_WORDS, k=count))

    def prose(self, length: int) -> str:
        """Markdown as an assistant writes it: paragraphs, lists, now and then a fenced block.

        One text in two is pure ASCII; one character beyond it makes a Python string two or four
        times as large, so that this is decided per text.
        """
        rng, parts, left = self.rng, [], length
        flavour = rng.choices(list(_FLAVOURS), _FLAVOURS.values())[0]
        while left > 0:
            part = self._fenced() if left > 300 and rng.random() < 0.12 else rng.choice(self._prose[flavour])
            parts.append(part[: max(left, 20)] if not parts else part)
            left -= len(part) + 2
        return "\n\n".join(parts)

    def code(self, length: int) -> str:
        return self._fill(self._code, length)

    def log(self, length: int) -> str:
        return self._fill(self._log, length)

    def numbered(self, length: int, arrow: str) -> str:
        """A file as the Read tool shows it."""
        lines = self.code(length).split("\n")
        return "\n".join(f"{n:>6}{arrow}{line}" for n, line in enumerate(lines, 1))

    def opaque(self, length: int) -> str:
        """Base64-like text: signatures, encrypted content, images."""
        start = self.rng.randrange(max(1, len(self._opaque) - length))
        return self._opaque[start : start + length]

    def path(self) -> str:
        rng = self.rng
        return f"/srv/demo/{rng.choice(_FOLDERS)}/{rng.choice(_NAMES)}_{rng.choice(_WORDS)}{rng.choice(_ENDINGS)}"

    def hex(self, digits: int) -> str:
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        h = self.hex(32)
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def _fill(self, chunks: list[str], length: int) -> str:
        parts, left = [], length
        while left > 0:
            part = self.rng.choice(chunks)
            parts.append(part[:left])
            left -= len(part) + 1
        return "\n".join(parts)

    def _fenced(self) -> str:
        return f"```{self.rng.choice(('python', 'ts', 'bash', ''))}\n{self.rng.choice(self._code)}\n```"

    def _lines(self, templates: tuple[str, ...], count: int) -> str:
        rng = self.rng
        names = {"a": rng.choice(_NAMES), "b": rng.choice(_WORDS), "d": rng.randint(10, 28)}
        lines = (
            t.format(n=rng.randint(3, 999), m=rng.randint(10, 59), **names) for t in rng.choices(templates, k=count)
        )
        return "\n".join(lines)

    def _paragraph(self, flavour: str) -> str:
        rng = self.rng
        sentences = [self._sentence() for _ in range(rng.randint(1, 5))]
        if flavour:
            sentences[0] = self._season(sentences[0], flavour)
        style = rng.random()
        if style < 0.25:
            return "\n".join(f"- **{rng.choice(_WORDS)}**: {s}" for s in sentences)
        return f"## {self.words(3).title()}\n\n{' '.join(sentences)}" if style < 0.35 else " ".join(sentences)

    def _sentence(self) -> str:
        rng = self.rng
        words = rng.choices(_WORDS, k=rng.randint(6, 18))
        if rng.random() < 0.4:
            words[rng.randrange(len(words))] = f"`{rng.choice(_NAMES)}.{rng.choice(_WORDS)}()`"
        if rng.random() < 0.1:
            words.insert(3, f'"{rng.choice(_WORDS)}"')
        return " ".join(words).capitalize() + "."

    def _season(self, sentence: str, flavour: str) -> str:
        rng = self.rng
        if flavour == "dashes":
            return sentence.replace(" ", rng.choice((" — ", " → ", " “so” ", " don’t ")), 1)
        if flavour == "accents":
            return f"{rng.choice(_ACCENTED)}: {sentence}"
        return f"{rng.choice(_EMOJI)} {sentence}" if flavour == "emoji" else "".join(rng.choices(_CJK, k=3))
