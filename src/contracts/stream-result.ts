/** Marks a stream result; the SDK and the runner are separate programs, so it is known by name. */
export const STREAM_RESULT = Symbol.for('svc.stream-result');

/** What a route's handler may return instead of JSON: pieces that go to the caller as they come. @spec docs/plugins.md "Streams" */
export interface StreamResult {
  readonly [STREAM_RESULT]: true;
  readonly contentType: string;
  readonly source: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;
}

/** What a stream may call itself: it becomes a header. */
export const STREAM_CONTENT_TYPE = /^[\w.+-]+\/[\w.+-]+(?:\s*;\s*[\w-]+=(?:[\w.+-]+|"[\w .+-]*"))*$/;

export function isStreamResult(value: unknown): value is StreamResult {
  return typeof value === 'object' && value !== null && (value as StreamResult)[STREAM_RESULT] === true;
}
