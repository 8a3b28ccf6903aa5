import type { DestinationSettings } from '../../../../../contracts/index.ts';
import type { JsonValue } from '../../../../../kit/data/json-value.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';

/** A delivery that is handed over to a destination. */
export interface HandOver {
  delivery: NewDelivery;
  settings: DestinationSettings;
  /** Whether the forward URL may have a private address. */
  mayBePrivate: boolean;
  timeoutMs: number;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Original headers, in the order of the request. They contain the secrets of the sender. */
  originalHeaders: () => Promise<Array<[string, string]>>;
  /** Body as received, or the JSON text of the transform's value. */
  body: Uint8Array;
  /** Parsed body, or the transform's value. */
  value: JsonValue;
  isTransformed: boolean;
}

/** Result of an attempt that the destination took. It becomes the outcome of the record. */
export type HandedOver = Record<string, unknown>;

/** Hands a delivery over. Throws DestinationFailure or another error if the attempt failed. */
export type HandOverTo = (handOver: HandOver) => Promise<HandedOver>;

/** A failed attempt. */
export class DestinationFailure extends Error {
  /** Whether further attempts cannot succeed. */
  readonly isFinal: boolean;
  /** Minimum time until the next attempt. */
  readonly retryAfterMs: number | undefined;
  readonly details: Record<string, unknown>;

  constructor(
    message: string,
    {
      isFinal = false,
      retryAfterMs,
      details = {},
    }: { isFinal?: boolean; retryAfterMs?: number | undefined; details?: Record<string, unknown> } = {},
  ) {
    super(message);
    this.name = 'DestinationFailure';
    this.isFinal = isFinal;
    this.retryAfterMs = retryAfterMs;
    this.details = details;
  }
}
