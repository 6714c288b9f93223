/** Where this page is, below whatever prefix a proxy put before it: the server writes the way back into <base>. */
const home = new URL(document.baseURI);

/** Of the router: no slash at its end. */
export const basepath = home.pathname.replace(/\/+$/, "") || "/";

/** Of the API: the page lives one level below it; ends with a slash. */
export const server = new URL(home.pathname.endsWith("/ui/") ? ".." : ".", home).href;

export const socketServer = server.replace(/^http/, "ws");

/** Styles that are made at run time carry it; the page's policy lets no others in. */
export const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";

// Where libraries of libraries look for it: what keeps the page from scrolling below a dialog is such a style.
Object.assign(globalThis, { __webpack_nonce__: nonce });
