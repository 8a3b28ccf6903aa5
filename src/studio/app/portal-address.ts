/** Page of one application's endpoints. It is opened by a link with a token and has no other screens. */
export const PORTAL = '/studio/portal';

/** Whether this page is the portal. It never becomes another one, because links of the studio do not lead there. */
export const IS_PORTAL = location.pathname.replace(/\/$/, '') === PORTAL;

export function endpointHref(id: string): string {
  return IS_PORTAL ? `${PORTAL}?endpoint=${id}` : `/studio/endpoints/${id}`;
}

export function messageHref(id: string): string {
  return IS_PORTAL ? `${PORTAL}?message=${id}` : `/studio/messages/${id}`;
}

export function messagesHref(query: Record<string, string>): string {
  const search = new URLSearchParams(IS_PORTAL ? { messages: '1', ...query } : query);
  return `${IS_PORTAL ? PORTAL : '/studio/messages'}?${search}`;
}
