"""Sign-in elsewhere: OpenID Connect. What it needs beyond the standard library is the extra `oidc`."""
