import { verify } from 'node:crypto';
import type { BuiltInVerifier } from '../schemes/built-in.ts';
import { repeatsKey } from '../schemes/repeated-key.ts';
import { isCertificateUrl, signingCertificate } from './aws-sns-certificate.ts';
import { snsMessageOf } from './aws-sns-message.ts';

export { type Confirmation, confirmationUrlOf } from './aws-sns-confirmation.ts';

/**
 * Verifies a message of Amazon SNS with signature version 1 or 2. The secret is the ARN of the topic: SNS signs the
 * messages of all customers with the same key, so that only the signed ARN tells them apart.
 * @spec docs/webhooks.md "Signatures"
 */
export const verifyAwsSns: BuiltInVerifier = async ({ body }, topicArn, { nowMs, fetchText }) => {
  const message = snsMessageOf(parsed(body));
  if (!message) return 'field_missing';
  // The ARN is compared first, so that a request without the right ARN causes no download of a certificate.
  if (message.topicArn !== topicArn) return false;
  if (!isCertificateUrl(message.certificateUrl, message.host)) return 'key_format';
  const pem = await fetchText(message.certificateUrl);
  const certificate = signingCertificate(pem, message.host, nowMs);
  if (!certificate) return 'key_format';
  if (!verify(message.digest, Buffer.from(message.signed), certificate.publicKey, message.signature))
    return false;
  return message.fields.some((name) => repeatsKey(body, [name])) ? 'field_repeated' : true;
};

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
