const HOME = '/studio/';
const MAX_CHARS = 1024;
const BASE = 'http://studio.invalid';

/**
 * Returns the screen to open after a sign-in. Any address outside the studio becomes its first screen, so that a link
 * with a sign-in cannot lead to another site.
 */
export function returnPath(asked: unknown): string {
  if (typeof asked !== 'string' || asked.length > MAX_CHARS || !URL.canParse(asked, BASE)) return HOME;
  const { origin, pathname, search } = new URL(asked, BASE);
  const isScreen = origin === BASE && pathname.startsWith(HOME) && !pathname.includes('//');
  return isScreen && !/^\/studio\/(?:sign-in|oidc)/.test(pathname) ? pathname + search : HOME;
}
