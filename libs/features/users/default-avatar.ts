/**
 * The picture of a user without one (contract, section 2.3, does not name its address). A `data:` URL is the
 * same on every installation and shows without asking anybody for it.
 */
const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" fill="#cbd5e1"/>' +
  '<circle cx="32" cy="25" r="11" fill="#fff"/><path d="M10 60a22 20 0 0 1 44 0z" fill="#fff"/></svg>';

export const DEFAULT_AVATAR_URL = `data:image/svg+xml,${encodeURIComponent(SVG)}`;
