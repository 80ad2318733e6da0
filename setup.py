"""Where the packages lie, and what an index shows; everything else about the project
stands in pyproject.toml.

`problems`, `hparams` and `bin` are top-level folders to read, and install as
`t2tlite.problems`, `t2tlite.hparams` and `t2tlite.bin`, so that nothing generic lands
in site-packages.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

# An index has no files beside the README: a link to one becomes its name.
page = Path("README.md").read_text(encoding="utf-8")
for pattern, text in (
    (r"<picture>(?s:.*?)</picture>\n\n", ""),
    (r"\[([^]]+)\]\(\1?(?:#[^)]*)?\)", r"\1"),
    (r"\[([^]]+)\]\((?!https:)([^)#]+)[^)]*\)", r"\1 (\2)"),
):
    page = re.sub(pattern, text, page)
page += "\nThe files named here are in the source distribution.\n"

packages = find_packages(include=["t2tlite", "t2tlite.*"])
package_dir = {"t2tlite": "t2tlite"}
for folder in ("problems", "hparams", "bin"):
    package_dir[f"t2tlite.{folder}"] = folder
    packages += [f"t2tlite.{folder}"]
    packages += [f"t2tlite.{folder}.{name}" for name in find_packages(folder)]

package_data = {
    "t2tlite": [
        "py.typed",
        "data/*.txt",
        "programs/export/*.jinja",
        "programs/report/*.html",
        "programs/report/*.jinja",
        "programs/serving/*.html",
        "programs/table3/*.jinja",
        *(f"programs/visualise/*.{ending}" for ending in ("html", "css", "js")),
    ],
    "t2tlite.problems.grammar": ["*.txt"],
}
setup(
    packages=packages,
    package_dir=package_dir,
    package_data=package_data,
    long_description=page,
    long_description_content_type="text/markdown",
)
