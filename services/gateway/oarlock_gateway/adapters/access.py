"""Who may come in: one token, shown as a bearer or kept in the page's cookie; and the headers that guard the page."""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from fastapi import HTTPException, Request, Response

COOKIE = "oarlock"

LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""What this machine is called by itself alone."""

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Guard:
    """Checks requests against the token; with none set, everyone on this machine may come in."""

    def __init__(self, token: str | None) -> None:
        self._token = token
        # The cookie holds a derived value: one who reads it cannot speak as a bearer.
        self._cookie = hashlib.sha256(f"oarlock-page:{token}".encode()).hexdigest()

    def check(self, request: Request) -> None:
        """Let the request pass.

        Raises:
            HTTPException: 401 without the token; 403 when a page of another origin sent it with our cookie, or, where
                there is no token, under another name than this machine's own.
        """
        if self._token is None:
            self._named_locally(request)
            self._same_origin(request)
            return
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.right(shown):
            return
        if not _equal(request.cookies.get(COOKIE, ""), self._cookie):
            raise HTTPException(
                401, "show the gateway's token: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"}
            )
        self._same_origin(request)

    def right(self, token: str) -> bool:
        """Whether ``token`` is ours (compared in constant time)."""
        return self._token is None or _equal(token, self._token)

    def remember(self, response: Response) -> None:
        """Let the page's browser in from now on."""
        response.set_cookie(COOKIE, self._cookie, httponly=True, samesite="strict", max_age=30 * 86_400)

    @staticmethod
    def _named_locally(request: Request) -> None:
        # A stranger's page can point its own name at 127.0.0.1 (DNS rebinding), and is then of our origin.
        if urlsplit(f"//{request.headers.get('host', '')}").hostname not in LOCAL_NAMES:
            raise HTTPException(403, "without a token the gateway answers to localhost only: set OARLOCK_GATEWAY_TOKEN")

    @staticmethod
    def _same_origin(request: Request) -> None:
        origin = request.headers.get("origin")
        if request.method not in {"GET", "HEAD"} and origin and urlsplit(origin).netloc != request.headers.get("host"):
            raise HTTPException(403, "a page of another origin may not do this")


def _equal(a: str, b: str) -> bool:
    return hmac.compare_digest(a.encode("utf-8", "replace"), b.encode("utf-8", "replace"))
