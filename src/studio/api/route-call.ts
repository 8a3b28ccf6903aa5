import { foreignNamespace } from '../app/namespace.ts';
import { session } from '../app/session-state.ts';
import { ApiError } from './call.ts';

/** Answer of a plugin route. */
export interface RouteAnswer {
  status: number;
  contentType: string;
  text: string;
}

/** Longer answers are cut off. */
const MAX_ANSWER_CHARS = 200_000;

/**
 * Calls a route of a plugin with the session of this browser. The answer is text, because plugins choose what it
 * contains.
 */
export async function callRoute(
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<RouteAnswer> {
  const namespaceId = foreignNamespace();
  const response = await fetch(path, {
    method,
    signal,
    headers: {
      'x-svc-csrf': session.value!.csrfToken,
      ...(namespaceId === undefined ? {} : { 'x-svc-namespace': namespaceId }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    // A redirect would let a plugin choose a call that the browser then makes with the session.
    redirect: 'manual',
  }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new ApiError(0, { code: 'UNREACHABLE', message: 'The gateway does not answer. Is svc running?' });
  });
  if (response.type === 'opaqueredirect')
    throw new ApiError(0, {
      code: 'REDIRECT',
      message: 'The route answered with a redirect, which the studio does not follow.',
    });
  const contentType = response.headers.get('content-type') ?? '';
  return { status: response.status, contentType, text: await firstText(response) };
}

/** Reads the answer up to the limit. An endless stream ends there. */
async function firstText(response: Response): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (reader && text.length < MAX_ANSWER_CHARS) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += value;
  }
  await reader?.cancel();
  return text.slice(0, MAX_ANSWER_CHARS);
}
