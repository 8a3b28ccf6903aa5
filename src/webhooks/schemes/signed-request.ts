/** A delivery as its verification needs it. */
export interface SignedRequest {
  method: string;
  /** Absolute URL as the sender called it. */
  url: string;
  /** Path and query as sent. */
  target: string;
  /** Header names and values as sent, in the flat array format of Node's `rawHeaders`. */
  rawHeaders: readonly string[];
  body: Buffer;
  /** IP address of the client. */
  source: string;
  /** Returns the parsed body, or undefined if it cannot be parsed. Repeated fields of a form are arrays. */
  fields(): unknown;
}

/** Reason for refusing a delivery, for the operator's record only. Senders always get the same 401. */
export type SignatureFault =
  | 'unprovisioned'
  | 'address_not_allowed'
  | 'header_missing'
  | 'header_repeated'
  | 'query_missing'
  | 'query_repeated'
  | 'field_missing'
  | 'field_repeated'
  | 'prefix_missing'
  | 'encoding'
  | 'body_not_form'
  | 'timestamp_malformed'
  | 'timestamp_outside_tolerance'
  | 'key_format'
  | 'token_malformed'
  | 'token_algorithm'
  | 'token_claim'
  | 'token_expired'
  | 'body_digest'
  | 'mismatch'
  | 'validator_refused';

/** A single text of a request, or the reason why there is none. */
export type Sent = { text: string; fault?: undefined } | { text?: undefined; fault: SignatureFault };

export type SignatureVerdict =
  | { valid: true; secret: 'current' | 'previous' }
  | { valid: false; fault: SignatureFault; skewSeconds?: number };
