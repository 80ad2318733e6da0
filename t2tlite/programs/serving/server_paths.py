"""The pages of the server, and what watches it."""

from __future__ import annotations

import importlib.resources

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from t2tlite.programs.serving.schemas import StatusResponse
from t2tlite.programs.serving.service import READY, CurrentService

router = APIRouter(tags=["Server"])


@router.get("/", include_in_schema=False)
async def translation_page() -> HTMLResponse:
    """The page to translate and parse."""
    return HTMLResponse(_page("page.html"))


@router.get("/docs", include_in_schema=False)
async def docs_page() -> HTMLResponse:
    """The page that describes the API."""
    return HTMLResponse(_page("docs.html"))


@router.get("/health", summary="Whether the process lives")
async def health() -> StatusResponse:
    """Answers while the process lives."""
    return StatusResponse(status="ok")


@router.get("/ready", summary="Whether requests are accepted")
async def ready(service: CurrentService, response: Response) -> StatusResponse:
    """Status 200 if requests are accepted and every thread that computes lives, else
    503.
    """
    status = service.shown_status
    response.status_code = 200 if status == READY else 503
    return StatusResponse(status=status)


@router.get("/metrics", summary="Counters for Prometheus")
async def metrics(service: CurrentService) -> Response:
    """Counters, in Prometheus's text format."""
    body, content_type = service.metrics.text()
    return Response(body, media_type=content_type)


def _page(name: str) -> str:
    return (
        importlib.resources.files("t2tlite.programs.serving")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
