import { PlatformError } from '../../../../kit/errors/errors.ts';

const MAX_EXCERPT_CHARS = 2048;
const MAX_ERROR_CHARS = 300;
/** Control characters, and characters that change the direction of text, which could spoof terminals. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;

/** Returns the start of an answer as safe text, or null if it is empty. */
export function excerptOf(bytes: Uint8Array): string | null {
  if (bytes.byteLength === 0) return null;
  const text = escapeControls(new TextDecoder().decode(bytes));
  return text.slice(0, MAX_EXCERPT_CHARS);
}

function escapeControls(text: string): string {
  return text.replace(UNSAFE, (char) =>
    char === '\n' || char === '\t' ? char : `\\u${char.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  );
}

/** Names the failure of a request without addresses of the network or parts of the message. */
export function errorOf(error: unknown): string {
  if (error instanceof PlatformError) return error.message.slice(0, MAX_ERROR_CHARS);
  const cause = error as { code?: unknown; errors?: unknown[] } | null;
  const [first] = cause?.errors ?? [];
  const code = String(cause?.code ?? (first as { code?: unknown } | undefined)?.code ?? '');
  return TEXTS[code] ?? `The connection failed${/^[A-Z0-9_]{1,64}$/.test(code) ? ` (${code})` : ''}`;
}

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused (ECONNREFUSED)',
  ECONNRESET: 'The connection was reset (ECONNRESET)',
  ENOTFOUND: 'The host name was not found (ENOTFOUND)',
  EAI_AGAIN: 'The host name could not be looked up (EAI_AGAIN)',
  UND_ERR_CONNECT_TIMEOUT: 'No connection within 10 s',
  UND_ERR_SOCKET: 'The connection was closed before the answer',
};

/** Returns the error of an answer, or null for a success. */
export function errorOfStatus(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  if (status >= 300 && status < 400) return `HTTP ${status}: redirects are not followed`;
  return `HTTP ${status}`;
}
