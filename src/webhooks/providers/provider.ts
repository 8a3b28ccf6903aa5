import type {
  AcceptedReply,
  BasicAuth,
  BodyFormat,
  Handshake,
  JwtAuth,
  ProviderId,
  RequestPlace,
  SignatureAuth,
} from '../../contracts/index.ts';

/**
 * A shared secret that the request contains: in a header (after `prefix`), a query parameter or a field of the body. Used
 * by providers that sign nothing.
 */
export interface TokenAuth {
  type: 'token';
  at: RequestPlace;
  prefix?: string;
}

/** Check of a scheme that data cannot express, by a function of the platform. */
export interface BuiltInAuth {
  type: 'built-in';
  verifier: 'aws-sns' | 'paypal' | 'twilio';
}

export type ProviderAuth = SignatureAuth | BasicAuth | JwtAuth | TokenAuth | BuiltInAuth;

/** What a scheme protects against a third party that has not got the secret. */
export interface Protection {
  /** A changed body is refused. */
  body: boolean;
  /** A changed URL is refused. */
  url: boolean;
  /** An old delivery that is sent again is refused. */
  time: boolean;
  /** A request without knowledge of the secret is refused. */
  sender: boolean;
}

/** A sender of webhooks, as data. The folder has one file per provider. */
export interface Provider {
  id: ProviderId;
  /** Name as the provider writes it. */
  name: string;
  /** Pages of the provider that this entry was written from. */
  sources: readonly string[];
  /** Day on which the entry was compared with the sources. */
  checkedOn: string;
  /**
   * Schemes that the provider uses. A request is verified by the first one whose place (signature, token) it fills, and
   * by the first one if it fills none.
   */
  auth: readonly [ProviderAuth, ...ProviderAuth[]];
  /**
   * Who makes the secret: `platform` (pasted at the sender), `sender` (piped into `provision`), `either`, or `url` (an
   * unguessable token in the URL, because the provider signs nothing).
   */
  secretFrom: 'platform' | 'sender' | 'either' | 'url';
  /** Where the user finds or enters the secret at the provider. */
  secretHelp: string;
  /** What all schemes of `auth` protect. */
  protects: Protection;
  /** What the first scheme of `auth` protects, if that is more. */
  firstSchemeProtects?: Protection;
  /** Fields of the body in which a change is refused, if `protects.body` is false because the others can be changed. */
  protectedFields?: readonly string[];
  body?: BodyFormat;
  contentTypes?: readonly string[];
  /** Field of a form that contains JSON, such as Slack's `payload`. */
  jsonField?: string;
  /** Place of the delivery id, for idempotency. */
  deliveryId?: RequestPlace;
  /** Place of the event type. */
  eventType?: RequestPlace;
  /** Event types that the provider documents, or the most used of them. */
  events?: readonly string[];
  /** Published addresses of the sender. */
  ipAllow?: readonly string[];
  handshakes?: readonly Handshake[];
  accepted?: AcceptedReply;
  /** Time limit of the sender, less a margin, in ms. A slower handler continues after the answer. */
  ackAfterMs?: number;
  /** Whether users can make the provider send the namespace header. Default: no, so that the URL names the namespace. */
  sendsHeaders?: boolean;
  /** Mistakes that users of this provider make, one sentence each. */
  pitfalls: readonly string[];
  /** A delivery as the provider documents it: the headers without signature, and the body as sent. */
  sample: { headers: Readonly<Record<string, string>>; body: string };
  /** Reason why no vector exists that other software than this platform made. Such an entry counts as unverified. */
  unverified?: string;
}
