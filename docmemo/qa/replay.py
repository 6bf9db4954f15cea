"""Reader and reranker that first look into the journal, so that a paid reply is never asked for twice."""

from __future__ import annotations

from dataclasses import dataclass

from docmemo.qa.journal import Journal
from docmemo.qa.protocols import Reader, ReadReply, ReadRequest, Reranker, RerankReply, RerankRequest


@dataclass
class JournaledReader:
    """A reader whose replies are kept under (key, round)."""

    reader: Reader
    journal: Journal
    key: str

    async def read(self, request: ReadRequest) -> ReadReply:
        """The recorded reply, or a new one, recorded."""
        found = self.journal.reply(self.key, request.round, "read", ReadReply)
        if found is not None:
            return found.model_copy(update={"replayed": True})
        found = await self.reader.read(request)
        self.journal.add_reply(self.key, request.round, "read", found)
        return found


@dataclass
class JournaledReranker:
    """A reranker whose replies are kept under (key, round)."""

    reranker: Reranker
    journal: Journal
    key: str

    async def rerank(self, request: RerankRequest) -> RerankReply:
        """The recorded reply, or a new one, recorded."""
        found = self.journal.reply(self.key, request.round, "rerank", RerankReply)
        if found is not None:
            return found.model_copy(update={"replayed": True})
        found = await self.reranker.rerank(request)
        self.journal.add_reply(self.key, request.round, "rerank", found)
        return found
