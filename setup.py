"""Where the packages lie; everything else about the project stands in pyproject.toml.

`problems`, `hparams` and `bin` are top-level folders to read, and install as
`t2tlite.problems`, `t2tlite.hparams` and `t2tlite.bin`, so that nothing generic lands
in site-packages.
"""

from setuptools import find_packages, setup

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
setup(packages=packages, package_dir=package_dir, package_data=package_data)
