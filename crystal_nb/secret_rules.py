"""What secrets look like: by their own form, and by what stands before them."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["HARMLESS", "KINDS", "NAMES", "RULES", "Rule"]


class Rule(NamedTuple):
    kind: str
    needles: tuple[str, ...]
    """One of them is in every text that the pattern fits, in lower case."""
    pattern: re.Pattern[str]
    """Its group ``secret`` is masked, or all of it when it has none."""


def _rule(kind: str, needles: str, pattern: str) -> Rule:
    return Rule(kind, tuple(needles.split()), re.compile(pattern))


_B, _E = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
_IS = r"\\*[\"']?\s*(?:=>|:=|=|:)\s*"
_SET = rf"{_IS}\\*[\"'`]?"
"""Between a name and its value, in code, JSON, YAML and shell."""
_QUOTE, _QUOTED = r"(?P<quote>\\*[\"'`])", r"(?:(?!(?P=quote))(?:\\.|[^\\\r\n]))"
"""What opens a quoted text, escaped itself or not, and a character inside it."""
_NO_PHRASE = (
    r"(?![\s,;:)\]}+&|]|\.[a-z]|\$[A-Za-z_{(]|(?:your|enter|please|invalid|must|new|confirm)\s"
    rf"|[<{{\[]{_QUOTED}{{0,200}}[>}}\]](?P=quote)|{_QUOTED}{{0,200}}?\b(?:password|passphrase|required)\b)"
)
"""Code between two quoted texts, a variable, a placeholder, or what a form says, is no passphrase."""
_GIVEN, _MIXED = r"(?:=|\s+|\\*[\"']\s*,\s*)\\*[\"'`]?", r"(?=[^\s\"'`]{0,200}?\d)"
"""Between an option and its value in a shell or a list; and what words of a help text are not: with a digit."""
_PASSWORD = r"(?:password|passwd|passphrase|passcode|(?<![a-z])pwd|(?<![a-z])pass)"
RULES = (
    _rule(
        "private key",
        "private",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?s:.{0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,.-]*)",
    ),
    _rule("private key", "private-lines", r"Private-Lines: \d+(?P<secret>(?:\r?\n|\\n)(?:[A-Za-z0-9+/=\r\n\\]+))"),
    _rule(
        "netrc password",
        "machine",
        r"machine\s{1,9}\S{1,200}+\s{1,9}login\s{1,9}\S{1,200}+\s{1,9}password\s{1,9}(?P<secret>\S+)",
    ),
    _rule("age key", "age-secret-key", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    _rule("AWS key id", "akia asia abia acca aroa aida", rf"{_B}(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{{16}}{_E}"),
    _rule(
        "AWS secret key",
        "aws secretaccesskey",
        r"(?i)(?:aws.{0,20}?(?:secret|key)[a-z_]{0,20}|secretaccesskey)"
        rf"{_SET}(?P<secret>[A-Za-z0-9/+=]{{40}})(?![A-Za-z0-9/+=])",
    ),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,})"),
    _rule("GitLab token", "gl", rf"{_B}gl(?:pat|dt|rt|cbt|ptt|soat|agent|imt|ft|oas|ffct)-[A-Za-z0-9_-]{{20,}}"),
    _rule("Slack token", "xox xapp-", rf"{_B}(?:xox[a-z]|xapp)-[A-Za-z0-9-]{{10,}}"),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    _rule("Stripe key", "k_live_ k_test_ whsec_", rf"{_B}(?:[srp]k_(?:live|test)_[A-Za-z0-9]{{16,}}|whsec_\w{{24,}})"),
    _rule("Anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _rule(
        "OpenAI key",
        "sk-",
        rf"{_B}sk-(?=[A-Za-z0-9_-]{{0,80}}?[0-9A-Z])(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{{20,}}",
    ),
    _rule("OpenRouter key", "sk-or-", r"sk-or-[A-Za-z0-9-]{20,}"),
    _rule("Groq key", "gsk_", rf"{_B}gsk_[A-Za-z0-9]{{20,}}"),
    _rule("Google key", "aiza ya29. gocspx-", rf"{_B}(?:AIza[\w-]{{35}}|ya29\.[\w-]{{20,}}|GOCSPX-[\w-]{{20,}})"),
    _rule(
        "Azure key", "key= key: sig=", r"(?:AccountKey|SharedAccessKey)\s*[=:]\s*(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"
    ),
    _rule("Azure signature", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{40,})"),
    _rule("Azure client secret", "q~", r"(?<![\w~.-])[\w~.-]{3}[78]Q~[\w~.-]{31,34}(?![\w~.-])"),
    _rule("npm token", "npm_ _authtoken", rf"(?:{_B}npm_[A-Za-z0-9]{{36}}|_authToken=(?P<secret>[^\s\"'$]{{8,}}))"),
    _rule("PyPI token", "pypi-", r"pypi-Ag[A-Za-z0-9_-]{50,}"),
    _rule("JWT", "eyj", rf"{_B}eyJ[\w-]{{8,}}\.eyJ[\w-]{{8,}}\.?[\w-]*"),
    _rule("SendGrid key", "sg.", rf"{_B}SG\.[\w-]{{16,}}\.[\w-]{{32,}}"),
    _rule("Twilio key", "sk ac", rf"{_B}(?:SK|AC)[0-9a-f]{{32}}{_E}"),
    _rule("Mailgun key", "key-", rf"{_B}key-[0-9a-zA-Z]{{32}}{_E}"),
    _rule("Mailchimp key", "-us", rf"{_B}[0-9a-f]{{32}}-us\d{{1,2}}{_E}"),
    _rule("Heroku key", "hrku-", r"HRKU-[A-Za-z0-9_-]{30,}"),
    _rule(
        "Heroku key",
        "heroku",
        rf"(?i)heroku[a-z_ -]{{0,20}}{_SET}(?P<secret>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})",
    ),
    _rule("DigitalOcean token", "_v1_", rf"{_B}do[opr]_v1_[a-f0-9]{{64}}"),
    _rule("Hugging Face token", "hf_ api_org_", rf"{_B}(?:hf_|api_org_)[A-Za-z0-9]{{30,}}"),
    _rule("Telegram token", ":aa", rf"{_B}\d{{8,10}}:AA[\w-]{{33}}{_E}"),
    _rule("Discord webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d+/(?P<secret>[\w-]{30,})"),
    _rule("Discord token", ".", rf"{_B}[MNO][A-Za-z\d_-]{{23,27}}\.[A-Za-z\d_-]{{6}}\.[A-Za-z\d_-]{{27,38}}{_E}"),
    _rule(
        "Datadog key",
        "dd datadog",
        rf"(?i)(?:datadog|{_B}dd)[a-z_ -]{{0,20}}key{_SET}(?P<secret>[0-9a-f]{{32,40}}){_E}",
    ),
    _rule(
        "Cloudflare token",
        "cloudflare cf_ v1.0-",
        rf"(?:v1\.0-[a-f0-9]{{24}}-[a-f0-9]{{100,}}|(?i:cloudflare|{_B}cf)_?(?i:[a-z_ -]{{0,20}}(?:key|token))"
        rf"{_SET}(?P<secret>[A-Za-z0-9_-]{{37,45}}){_E})",
    ),
    _rule("Square token", "sq0 eaaa", rf"{_B}(?:sq0[a-z]{{3}}-[\w-]{{22,43}}|EAAA[\w-]{{56,}})"),
    _rule("Shopify token", "shp", rf"{_B}shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}}"),
    _rule("Databricks token", "dapi", rf"{_B}dapi[a-f0-9]{{32}}"),
    _rule("Docker token", "dckr_", r"dckr_[po]at_[\w-]{20,}"),
    _rule("Vault token", "hvs. hvb.", rf"{_B}hv[sb]\.[\w-]{{20,}}"),
    _rule("Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    _rule("Grafana token", "glsa_ glc_", rf"{_B}(?:glsa|glc)_[\w+/=-]{{30,}}"),
    _rule("Linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    _rule("Notion key", "ntn_ secret_", rf"{_B}(?:ntn_[A-Za-z0-9]{{40,}}|secret_[A-Za-z0-9]{{43}}{_E})"),
    _rule("New Relic key", "nrak-", r"NRAK-[A-Z0-9]{20,}"),
    _rule("Postman key", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _rule("Supabase key", "sbp_ sb_secret_", rf"{_B}(?:sbp_[a-f0-9]{{40}}|sb_secret_[\w-]{{20,}})"),
    _rule("Sentry token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    _rule(
        "database URL",
        "://",
        r"(?i)\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|redis|rediss|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb)"
        r"(?:\+[a-z0-9]+)?://[^\s:/@\"'<>]*:(?P<secret>(?:(?!://)[^\s\"'<>])+)@",
    ),
    _rule("URL password", "://", r"(?i)\b[a-z][a-z0-9+.-]*://[^\s:/@\"'<>]*:(?P<secret>[^\s:@/\"'<>$]+)@"),
    _rule(
        "authorization header",
        "bearer basic token",
        r"(?i)\b(?:bearer|(?<=authorization: )(?:basic|token)|(?<=authorization:)(?:basic|token))\s+"
        r"(?P<secret>(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,}+)",
    ),
    _rule("curl password", "-u --user", r"(?<!\S)(?:-u|--user)[ =][\"']?[\w.@+-]+:(?P<secret>[^\s\"'$]{4,})"),
    _rule(
        "password",
        "pass pwd",
        r"(?i)[\"'](?:name|key)\\*[\"']\s*:\s*\\*[\"'][^\"'\\]{0,60}(?:pass|pwd)[^\"'\\]{0,20}\\*[\"']\s*,\s*"
        r"\\*[\"']value\\*[\"']\s*:\s*\\*[\"'](?P<secret>[^\"'\\]{4,})",
    ),
    _rule(
        "password",
        "pass pwd",
        rf"(?i){_PASSWORD}{_IS}{_QUOTE}{_NO_PHRASE}(?P<secret>{_QUOTED}{{4,200}})(?P=quote)",
    ),
    _rule(
        "password",
        "pass pwd",
        rf"(?i){_PASSWORD}{_SET}"
        r"(?P<secret>[^\s\"'`,;(){}\[\]<>$]{4,}+)(?![(\[])",
    ),
    _rule(
        "password", "--pass", rf"(?i)(?<![\w-])--pass(?:word|wd|phrase)?{_GIVEN}(?P<secret>{_MIXED}[^\s\"'`$]{{4,}}+)"
    ),
    _rule("password", "sshpass", r"sshpass\s+-p\s*\\*[\"']?(?P<secret>[^\s\"'\\$]{4,})"),
    _rule(
        "password",
        "pass",
        r"(?i)<(?P<tag>[\w:.-]{0,40}pass(?:word|wd|phrase))>\s*(?P<secret>[^\s<>$][^<>\r\n]{3,200})</(?P=tag)>",
    ),
    _rule("cookie", "cookie", r"(?i)\bcookie:\s*(?P<secret>[\w.-]+=[^\s;,\"'\\]{8,}+(?:;\s*[\w.-]+=[^\s;,\"'\\]+)*)"),
    _rule(
        "secret",
        "--",
        rf"(?i)(?<![\w-])--(?:[a-z]+-)?(?:token|secret|api-?key){_GIVEN}(?P<secret>{_MIXED}[^\s\"'`$]{{8,}}+)",
    ),
    _rule(
        "secret",
        "secret",
        rf"(?i)secret[_-]?key(?:[_-]?base)?{_IS}{_QUOTE}(?P<secret>(?!\$[A-Za-z_{{(]){_MIXED}(?:(?!\s){_QUOTED}){{12,200}})(?P=quote)",
    ),
    _rule(
        "secret",
        "secret token key credential auth",
        rf"(?i)(?:secret(?:[_-]?key)?|token|api[_-]?key|access[_-]?key|account[_-]?key|credentials?|auth){_SET}"
        r"(?P<secret>(?=[\w.~+/=:-]{0,200}?\d)(?=[\w.~+/=:-]{0,200}?[a-z])[\w.~+/=:-]{16,}+)",
    ),
)
KINDS = tuple(dict.fromkeys(rule.kind for rule in RULES))
"""Kinds of secrets that are known, the most certain first."""
HARMLESS = re.compile(
    r"(?i)(?:none|null|nil|undefined|true|false|str|string|text|bytes|int|number|any|optional|self|args|"
    r"required|empty|unset|changeme|example|your[\w-]*|my[_-]?(?:password|secret|token)|"
    r"(?:\w*_)?(?:password|passwd|pwd|pass|secret|token|key)s?|[*x.…-]+|[a-z_]\w*(?:\.[a-z_]\w*)+|%[a-z]\S*|:\w+)[.!?:]*"
)

"""What stands where a password or secret would, and is none."""
NAMES = re.compile(
    r"(?i)(?P<password>pass(?:word|wd|phrase|code)|(?<![a-z])(?:pwd|pass)(?![a-z]))"
    r"|secret|credential|token(?![a-z])|(?:api|access|account|private)[_-]?key|(?<![a-z])auth(?:orization)?(?![a-z])"
)
"""Names of fields whose text is secret as a whole."""
