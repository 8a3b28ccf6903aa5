import {
  createStudioLink,
  endStudioSession,
  getStudioSession,
  startStudioSession,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { AttemptLimits } from '../domain/identity/attempt-limits.ts';
import type { MintedTokens } from '../domain/identity/minted-tokens.ts';
import type { SessionCookie } from '../domain/identity/session-cookie.ts';
import type { StudioSessions } from '../domain/identity/studio-sessions.ts';
import { subjectOf } from './subject.ts';

export interface StudioSessionServices {
  studioSessions: StudioSessions;
  sessionCookie: SessionCookie;
  mintedTokens: MintedTokens;
  attempts: AttemptLimits;
}

/** Routes with which people sign in to the studio and out of it. @spec docs/studio.md */
export function studioSessionRoutes(http: Http, services: StudioSessionServices): void {
  const { studioSessions, sessionCookie, mintedTokens, attempts } = services;
  mount(http, createStudioLink, { auth: 'caller' }, ({ request, reply }) => {
    reply.header('cache-control', 'no-store');
    return studioSessions.createLink(subjectOf(request));
  });
  mount(http, startStudioSession, { auth: 'open' }, async ({ body, request, reply }) => {
    const clientId = 'clientId' in body ? body.clientId : null;
    const start = () => studioSessions.start(body, subjectOf(request));
    const { session, setCookie } = await attempts.guard(request.ip, clientId, start);
    reply.header('cache-control', 'no-store').header('set-cookie', setCookie);
    return session;
  });
  mount(http, getStudioSession, { auth: 'open' }, async ({ request, reply }) => {
    reply.header('cache-control', 'no-store');
    return (await studioSessions.current(subjectOf(request))).session;
  });
  mount(http, endStudioSession, { auth: 'caller' }, async ({ request, reply }) => {
    const { caller } = await studioSessions.current(subjectOf(request));
    if (caller.jti !== null) await mintedTokens.endSession(caller.jti, caller.expiresAt);
    reply.header('set-cookie', sessionCookie.end());
    return { revoked: true as const };
  });
}
