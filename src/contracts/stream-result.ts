/**
 * Marker of a stream result. The symbol is global (`Symbol.for`), because a plugin's SDK and the runner contain
 * separate copies of this module.
 */
export const STREAM_RESULT = Symbol.for('svc.stream-result');

/**
 * Streaming result of a route handler. Chunks are sent to the caller as they are produced. @spec docs/plugins.md
 * "Streams"
 */
export interface StreamResult {
  readonly [STREAM_RESULT]: true;
  readonly contentType: string;
  readonly source: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;
}

/** Matches allowed content types of a stream. The pattern is strict, because the value becomes a response header. */
export const STREAM_CONTENT_TYPE = /^[\w.+-]+\/[\w.+-]+(?:\s*;\s*[\w-]+=(?:[\w.+-]+|"[\w .+-]*"))*$/;

export function isStreamResult(value: unknown): value is StreamResult {
  return typeof value === 'object' && value !== null && (value as StreamResult)[STREAM_RESULT] === true;
}
