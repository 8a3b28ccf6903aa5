import type { FastifyReply, FastifyRequest } from 'fastify';
import { OAUTH_CALLBACK, OAUTH_START } from '../../../contracts/index.ts';
import type { Http } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import {
  AuthorizationFailed,
  type Authorizations,
} from '../domain/connections/authorization/authorizations.ts';
import {
  donePage,
  invitationPage,
  PAGE_HEADERS,
  problemPage,
} from '../domain/connections/authorization/pages.ts';
import type { AttemptLimits } from '../domain/identity/attempt-limits.ts';
import { subjectOf } from './subject.ts';

export interface ConnectionPagesServices {
  authorizations: Authorizations;
  attempts: AttemptLimits;
}

interface TicketRoute {
  Params: { ticket: string };
}

const TICKET = /^[\w-]{43}$/;

/** Pages of a person on the way to a provider and back. @spec docs/connections.md "Security" */
export function connectionPagesRoutes(
  http: Http,
  { authorizations, attempts }: ConnectionPagesServices,
): void {
  /** Answers with a page, also after a failure, because a person sees the answer. */
  const serve = async (request: FastifyRequest, reply: FastifyReply, go: () => Promise<string>) => {
    reply.headers(PAGE_HEADERS);
    try {
      const html = await attempts.guardSignIn(request.ip, isGuess, go);
      return reply.sent ? reply : reply.send(html);
    } catch (error) {
      const subject = subjectOf(request);
      if (error instanceof AuthorizationFailed) authorizations.explain(error, subject);
      else if (!isLimit(error)) http.kit.logger.error('An authorization failed', { error });
      const problem =
        error instanceof AuthorizationFailed ? error.problem : isLimit(error) ? 'too-many' : 'failed';
      const { status, html } = problemPage(problem, subject.requestId);
      return reply.code(status).send(html);
    }
  };

  http.get<TicketRoute>(`${OAUTH_START}/:ticket`, (request, reply) =>
    serve(request, reply, async () => {
      const ticket = ticketOf(request.params.ticket);
      return invitationPage(await authorizations.describe(ticket), ticket);
    }),
  );
  http.get<TicketRoute>(`${OAUTH_START}/:ticket/continue`, (request, reply) =>
    serve(request, reply, async () => {
      const { location, setCookie } = await authorizations.begin(
        ticketOf(request.params.ticket),
        subjectOf(request),
      );
      reply.code(303).headers({ location, 'set-cookie': setCookie });
      return '';
    }),
  );
  http.get(OAUTH_CALLBACK, (request, reply) =>
    serve(request, reply, async () =>
      donePage(await authorizations.finish(queryOf(request.raw.url ?? ''), subjectOf(request))),
    ),
  );
}

function ticketOf(text: string): string {
  if (TICKET.test(text)) return text;
  throw new AuthorizationFailed('unknown-link', 'The link has no valid ticket.');
}

/** Only these failures can be attempts to guess a ticket or a state. */
const isGuess = (error: unknown): boolean =>
  error instanceof AuthorizationFailed && ['unknown-link', 'unknown-state'].includes(error.problem);

const isLimit = (error: unknown): boolean =>
  error instanceof PlatformError && error.code === 'RATE_LIMIT_EXCEEDED';

function queryOf(url: string): string {
  const at = url.indexOf('?');
  return at === -1 ? '' : url.slice(at);
}
