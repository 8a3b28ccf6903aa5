import { createHash } from 'node:crypto';
import type { AuthorizationProblem, Invitation } from './authorizations.ts';

const STYLE = `:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem}
h1{font-size:1.25rem}code{overflow-wrap:anywhere}
a.button{display:inline-block;padding:.5rem 1rem;border:2px solid;border-radius:.375rem;text-decoration:none;font-weight:600}`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Nothing on the page is loaded or executed, and no other page may frame it. */
export const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
};

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escaped(title)}</h1>
${body}
</main></body>
</html>
`;
}

/** Asks before the browser goes to the provider, because anybody can send the link. */
export function invitationPage(
  { connection, namespaceId, provider, scopes }: Invitation,
  ticket: string,
): string {
  const asked =
    scopes.length === 0
      ? '<p>It asks for no particular scopes.</p>'
      : `<p>It asks for these scopes:</p><ul>${scopes.map((scope) => `<li><code>${escaped(scope)}</code></li>`).join('')}</ul>`;
  return page(
    'Authorize a connection',
    `<p>The connection <code>${escaped(connection)}</code> of the namespace <code>${escaped(namespaceId)}</code> will use an account of yours at <code>${escaped(provider)}</code>. Go on only if you asked for this link, or trust the person who sent it.</p>
${asked}
<p><a class="button" href="${escaped(ticket)}/continue" rel="noreferrer">Continue to ${escaped(provider)}</a></p>`,
  );
}

export function donePage({ connection, account }: { connection: string; account: string | null }): string {
  const used = account === null ? '' : ` It uses the account <code>${escaped(account)}</code>.`;
  return page(
    'Connected',
    `<p>The connection <code>${escaped(connection)}</code> is authorized.${used} You can close this page.</p>`,
  );
}

const NEW_LINK = 'Ask for a new link: <code>svc connections authorize &lt;name&gt;</code>.';

/** None of these texts comes from the request. */
const PROBLEMS: Record<AuthorizationProblem | 'too-many' | 'failed', string> = {
  'unknown-link': `The link is unknown, was used before, or is older than ten minutes. ${NEW_LINK}`,
  'unknown-state': `This answer belongs to no authorization that waits for it: it was used before, or is older than ten minutes. ${NEW_LINK}`,
  'other-browser':
    'The authorization began in another browser. Open the link and sign in at the provider in the same browser, with cookies allowed.',
  removed: 'The connection was deleted meanwhile.',
  denied: `The authorization was refused at the provider, so nothing was connected. ${NEW_LINK}`,
  refused: `The provider gave no tokens. <code>svc connections show &lt;name&gt;</code> has the reason. ${NEW_LINK}`,
  unavailable: `The provider could not be reached. ${NEW_LINK}`,
  'too-many': 'Too many failed attempts came from your address. Try again in a minute.',
  failed: 'An error occurred in svc. The log has the details.',
};

const STATUSES: Partial<Record<keyof typeof PROBLEMS, number>> = {
  'too-many': 429,
  failed: 500,
  unavailable: 502,
};

export function problemPage(
  problem: keyof typeof PROBLEMS,
  requestId: string,
): { status: number; html: string } {
  const html = page(
    'Not connected',
    `<p>${PROBLEMS[problem]}</p>\n<p>Request: <code>${escaped(requestId)}</code></p>`,
  );
  return { status: STATUSES[problem] ?? 400, html };
}
