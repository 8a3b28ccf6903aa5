import type { FastifyReply, FastifyRequest } from 'fastify';
import { getStudioSignInOptions, STUDIO_OIDC_CALLBACK, STUDIO_OIDC_START } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { AttemptLimits } from '../domain/identity/attempt-limits.ts';
import { isGuess, type OidcSignIn, type Redirect } from '../domain/identity/oidc/sign-in.ts';
import { subjectOf } from './subject.ts';

export interface StudioOidcServices {
  oidcSignIn: OidcSignIn | null;
  attempts: AttemptLimits;
}

/** Pages on the way to the identity provider and back. @spec docs/studio.md "Sign in with your identity provider" */
export function studioOidcRoutes(http: Http, { oidcSignIn, attempts }: StudioOidcServices): void {
  mount(http, getStudioSignInOptions, { auth: 'open' }, ({ reply }) => {
    reply.header('cache-control', 'no-store');
    return { identityProvider: oidcSignIn?.button ?? null };
  });
  if (!oidcSignIn) return;

  /** Answers with a redirect, also after a failure, because a person sees the answer. */
  const redirect = async (request: FastifyRequest, reply: FastifyReply, go: () => Promise<Redirect>) => {
    const { location, cookies } = await attempts
      .guardSignIn(request.ip, isGuess, go)
      .catch((error: unknown) => oidcSignIn.explain(error, subjectOf(request)));
    reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'set-cookie': cookies });
    return reply.redirect(location, 303);
  };
  http.get<{ Querystring: { returnTo?: unknown } }>(STUDIO_OIDC_START, (request, reply) =>
    redirect(request, reply, () => oidcSignIn.begin(request.query.returnTo)),
  );
  http.get(STUDIO_OIDC_CALLBACK, (request, reply) =>
    redirect(request, reply, () => oidcSignIn.finish(queryOf(request.raw.url ?? ''), subjectOf(request))),
  );
}

function queryOf(url: string): string {
  const at = url.indexOf('?');
  return at === -1 ? '' : url.slice(at);
}
