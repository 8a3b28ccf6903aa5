import { decodeJwt } from 'jose';

type Fields = Record<string, unknown>;

/** What is known about the account of a token answer. Display only: nothing decides by it. */
export interface AccountHint {
  account: string | null;
}

const MAX_ACCOUNT_CHARS = 200;

/** Answer of a token endpoint as it came. */
interface RawAnswer {
  status: number;
  contentType: string | undefined;
  text: string;
}

/**
 * Converts the answer of a token endpoint to the form of RFC 6749. GitHub and Slack answer errors with status 200, Slack
 * nests user tokens, servers that ignore `Accept` answer with a form, and some providers send `expires_in` as text or
 * other token types. The ID token is removed, because it is used only for the name of the account. Returns null if the
 * answer is neither a JSON object nor a form.
 */
export function standardAnswer(
  { status, contentType, text }: RawAnswer,
  clientId: string,
): { status: number; fields: Fields; account: string | null } | null {
  const found = isForm(contentType) ? Object.fromEntries(new URLSearchParams(text)) : objectOf(text);
  if (!found) return null;
  const answer = found.ok === true ? slackAnswer(found) : found;
  const isError = found.ok === false || (answer.error !== undefined && answer.error !== null);
  if (isError) return { status: Math.max(status, 400), fields: errorOf(answer), account: null };
  if (status >= 400) return { status, fields: {}, account: null };
  const { access_token, refresh_token, expires_in, scope } = answer;
  const seconds = typeof expires_in === 'string' ? Number(expires_in) : expires_in;
  const fields: Fields = {
    access_token,
    // Bearer tokens only: other types (`mac`, `DPoP`) need more than a header. Names of Slack and HubSpot mean the same.
    token_type: isBearer(answer.token_type) ? 'bearer' : answer.token_type,
    ...(typeof refresh_token === 'string' && refresh_token !== '' ? { refresh_token } : {}),
    ...(Number.isFinite(seconds) && (seconds as number) > 0 ? { expires_in: seconds } : {}),
    ...(typeof scope === 'string' ? { scope } : {}),
  };
  return { status: 200, fields, account: accountOf(answer, clientId) };
}

const isForm = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);

function objectOf(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
  } catch {
    return null;
  }
}

/** Error fields other than the code are dropped: they can repeat the token that was sent. */
function errorOf({ error, error_code, errorCode }: Fields): Fields {
  const code = [error, error_code, errorCode].find((one) => typeof one === 'string');
  return { error: typeof code === 'string' ? code : 'unknown_error' };
}

function isBearer(type: unknown): boolean {
  return type === undefined || (typeof type === 'string' && /^(?:bearer|bot|user)$/i.test(type));
}

/** Slack returns the bot's token at the top, or only the user's token below `authed_user`. */
function slackAnswer(answer: Fields): Fields {
  const user = fieldsOf(answer.authed_user);
  return typeof answer.access_token === 'string' || typeof user.access_token !== 'string'
    ? answer
    : { ...answer, ...user };
}

function accountOf(answer: Fields, clientId: string): string | null {
  const claims = claimsOf(answer.id_token, clientId);
  const candidates = [
    ...[claims.email, claims.preferred_username, claims.sub],
    ...[fieldsOf(answer.team).name, answer.workspace_name, answer.hub_domain, answer.instance_url],
  ];
  const found = candidates.find((one) => typeof one === 'string' && one !== '');
  return typeof found === 'string' ? shownText(found) : null;
}

/** The signature is not checked: the token came from the token endpoint, and only its names are shown. */
function claimsOf(token: unknown, clientId: string): Fields {
  if (typeof token !== 'string') return {};
  try {
    const claims = decodeJwt(token);
    return [claims.aud].flat().includes(clientId) ? claims : {};
  } catch {
    return {};
  }
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

/** Returns a text of a provider without control characters and bidirectional overrides. */
function shownText(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, '')
    .slice(0, MAX_ACCOUNT_CHARS);
}
