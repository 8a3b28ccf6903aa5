import { isRecord } from '../../kit/data/is-record.ts';

/** Fields of each type of message that are signed, in the order of the signed text. */
const SIGNED_FIELDS = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: [
    'Message',
    'MessageId',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const;

type SnsMessageType = keyof typeof SIGNED_FIELDS;

const DIGESTS = { '1': 'sha1', '2': 'sha256' } as const;
/** A subject has no control characters, and at most 100 characters. */
const SUBJECT = /^[^\p{Cc}]{0,100}$/u;
const MESSAGE_ID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;
const TIMESTAMP = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z$/;
const TOPIC_ARN =
  /^arn:aws(?:-cn|-us-gov)?:sns:([a-z]{2}(?:-[a-z]+)+-[0-9]{1,2}):[0-9]{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?$/;

/** A message of Amazon SNS with the fields that its verification needs. */
export interface SnsMessage {
  type: SnsMessageType;
  topicArn: string;
  /** Host of SNS in the region of the topic. */
  host: string;
  signature: Buffer;
  digest: (typeof DIGESTS)[keyof typeof DIGESTS];
  certificateUrl: string;
  subscribeUrl: string | undefined;
  token: string | undefined;
  /** Signed text: each field's name and value, each followed by a line feed. */
  signed: string;
  /** Names of the fields that the verification reads. */
  fields: readonly string[];
}

/**
 * Reads a message of Amazon SNS. Returns undefined if a field is missing or malformed. The formats are checked because
 * the signed text has no quotes: a value with line feeds could otherwise pass for several fields.
 */
export function snsMessageOf(value: unknown): SnsMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { Type, TopicArn, MessageId, Subject, Timestamp, SignatureVersion, Signature, SigningCertURL } =
    value;
  if (!isType(Type) || typeof TopicArn !== 'string' || typeof SigningCertURL !== 'string') return undefined;
  if (typeof MessageId !== 'string' || !MESSAGE_ID.test(MessageId)) return undefined;
  if (Subject != null && (typeof Subject !== 'string' || !SUBJECT.test(Subject))) return undefined;
  if (typeof Timestamp !== 'string' || !TIMESTAMP.test(Timestamp)) return undefined;
  if (SignatureVersion !== '1' && SignatureVersion !== '2') return undefined;

  const host = snsHostOf(TopicArn);
  const signature = typeof Signature === 'string' ? fromBase64(Signature) : undefined;
  const signedFields = SIGNED_FIELDS[Type].filter((name) => name !== 'Subject' || value.Subject != null);
  const signed = textOf(value, signedFields);
  if (host === undefined || signature === undefined || signed === undefined) return undefined;
  return {
    type: Type,
    topicArn: TopicArn,
    host,
    signature,
    digest: DIGESTS[SignatureVersion],
    certificateUrl: SigningCertURL,
    subscribeUrl: stringOf(value.SubscribeURL),
    token: stringOf(value.Token),
    signed,
    fields: [...signedFields, 'SignatureVersion', 'Signature', 'SigningCertURL'],
  };
}

function isType(value: unknown): value is SnsMessageType {
  return typeof value === 'string' && Object.hasOwn(SIGNED_FIELDS, value);
}

function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Returns the host of SNS in the region of a topic. */
function snsHostOf(topicArn: string): string | undefined {
  const [, region] = TOPIC_ARN.exec(topicArn) ?? [];
  if (region === undefined) return undefined;
  return region.startsWith('cn-') ? `sns.${region}.amazonaws.com.cn` : `sns.${region}.amazonaws.com`;
}

function textOf(message: Record<string, unknown>, names: readonly string[]): string | undefined {
  let text = '';
  for (const name of names) {
    const value = message[name];
    if (typeof value !== 'string') return undefined;
    text += `${name}\n${value}\n`;
  }
  return text;
}

function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.length > 0 && bytes.toString('base64') === text ? bytes : undefined;
}
