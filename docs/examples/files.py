"""Text files in a folder, a document each; every tenth is held out."""

from pathlib import Path

from poet.data.corpora.contract import Corpus, Size
from poet.data.errors import DataError


class TextFiles(Corpus):
    name = "files"
    versions = {"format": 1}
    size = Size({"train": 900, "validation": 100}, text_bytes=6000, tokens=1400, source_bytes=6000)
    reads_folder = True

    def files(self):
        found = sorted(Path(self.path or ".").glob("*.txt"))
        if not found:
            raise DataError('corpus "files" finds no text: set "path" to a folder with *.txt files')
        return found

    def identity(self):
        return {"name": "files", "bytes": {path.name: path.stat().st_size for path in self.files()}}

    def texts(self, split):
        for number, path in enumerate(self.files()):
            if (number % 10 == 0) == (split == "validation"):
                try:
                    yield path.read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    raise DataError(f"cannot read {path} ({error}): take it out, or save it as UTF-8") from error


CORPUS = TextFiles
