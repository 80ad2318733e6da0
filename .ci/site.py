"""What mkdocs.yml adds to MkDocs: pages made of files that are not Markdown in docs/,
and docstrings of fields.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import griffe
import latex2mathml.converter
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
)
# called as function(default, meaning, ...)
FIELD_FUNCTIONS = ("checked_field", "model_field", "option")
# of a docstring, up to a blank line
EXAMPLES = re.compile(r"^>>> (?:.+\n?)+", re.MULTILINE)
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//[^>]*>|<link\b[^>]*>"
)

# LaTeX between dollar signs, alone or within a line
FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$\n]+)\$", re.DOTALL)
PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="(?:docs/)?(?P<dark>[^"]+)">'
    r'\s*<img src="(?:docs/)?(?P<light>[^"]+)" (?P<rest>[^>]*)>\s*</picture>'
)
CODE = re.compile(r"<code\b.*?</code>", re.DOTALL)
TAG = re.compile(r"(<[^>]*>)")
# in code: --hparams_set, t2t-trainer; so short that a phone's line can hold it
HYPHENATED = re.compile(r"(?<![\w&;./-])(?=[\w-]{3,32}(?![\w-]))(--?\w+|\w+-\w)[\w-]*")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the repository's first folder, and the notebooks as pages."""
    for name in PAGES:
        page = "index.md" if name == "README.md" else name
        files.append(
            File.generated(
                config, page, content=(ROOT / name).read_text(encoding="utf-8")
            )
        )
    for path in (ROOT / "docs").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        content = "\n\n".join(map(cell_text, cells))
        files.append(File.generated(config, f"{path.stem}.md", content=content))
    return files


def cell_text(cell: dict[str, Any]) -> str:
    """A notebook's cell in Markdown, with what it showed when it ran."""
    text = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return FORMULA.sub(mathml, text)
    shell = text.startswith("%%bash\n")
    language = "bash" if shell else "python"
    code = f"```{language}\n{text.removeprefix('%%bash').strip()}\n```"
    return "\n\n".join([code, *map(output_text, cell["outputs"])])


def mathml(formula: re.Match[str]) -> str:
    """A formula in MathML, which browsers show without a script."""
    if formula["display"]:
        block = latex2mathml.converter.convert(formula["display"], display="block")
        return f'<div class="formula">{block}</div>'
    return latex2mathml.converter.convert(formula["inline"])


def output_text(output: dict[str, Any]) -> str:
    """What a cell printed, or its value: a picture, a page in a frame, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(data["image/png"]).replace("\n", "")
        return f'<img src="data:image/png;base64,{picture}" alt="What the cell draws">'
    if "text/html" in data:
        # on one line, since a blank line would end it
        return "".join(data["text/html"]).replace("\n", "&#10;")
    text = "".join(output.get("text") or data["text/plain"]).strip("\n")
    return f"``` {{.text .output}}\n{text}\n```"


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Links between files of the repository become links between pages, and file names
    as their text become titles. A picture in two themes follows the site's theme.
    """
    markdown = PICTURE.sub(
        r'<img src="\g<light>#only-light" \g<rest>>'
        r'<img src="\g<dark>#only-dark" \g<rest>>',
        markdown,
    )
    markdown = re.sub(r"\]\((?:\.\./|docs/)", "](", markdown)
    markdown = re.sub(r"\]\(README\.md", "](index.md", markdown)
    markdown = re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", markdown)
    for section in config.nav or []:
        pages = next(iter(section.values()))
        for entry in pages if isinstance(pages, list) else [section]:
            ((title, name),) = entry.items()
            markdown = re.sub(
                rf"\[[\w./-]+\.(?:md|ipynb)\]\({re.escape(name)}\b",
                f"[{title}]({name}",
                markdown,
            )
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets no line break after a hyphen of a name in code (see docs/site.css)."""
    return CODE.sub(unbroken, html)


def unbroken(code: re.Match[str]) -> str:
    """The HTML of code, with each hyphenated name in a span."""
    parts = TAG.split(code[0])
    # texts and tags take turns
    for number in range(0, len(parts), 2):
        parts[number] = HYPHENATED.sub(
            r'<span class="unbroken">\g<0></span>', parts[number]
        )
    return "".join(parts)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuses a page that loads anything from another host."""
    tags = [
        tag
        for tag in LOADED.findall(output)
        if "//" in tag and 'rel="canonical"' not in tag
    ]
    if tags:
        raise PluginError(
            f"{page.file.src_uri} must load nothing from elsewhere. Received: {tags[0]}"
        )
    return output


class Docstrings(griffe.Extension):
    """Documents fields by their meaning, and shows docstrings' examples as code."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """A field `name: type = checked_field(default, meaning, ...)` has the value
        `default`. Without a meaning, the docstring of its class has that.
        """
        call = attr.value
        if (
            isinstance(call, griffe.ExprCall)
            and call.canonical_name.rpartition(".")[2] in FIELD_FUNCTIONS
        ):
            default, *others = call.arguments
            attr.value = default
            for meaning in others[:1]:
                if isinstance(meaning, str):
                    text = ast.literal_eval(meaning)
                    attr.docstring = griffe.Docstring(text, parent=attr)

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Lines that begin with >>>, and their results, are a block of code."""
        if func.docstring:
            func.docstring.value = EXAMPLES.sub(
                r"```pycon\n\g<0>\n```", func.docstring.value
            )
