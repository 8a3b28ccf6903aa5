import { CERTIFICATE, CERTIFICATE_URL, MESSAGES, TOPIC_ARN } from '../support/aws-sns-messages.ts';
import type { Vector, Vectors } from './vector.ts';

const FIXTURES =
  'https://github.com/aws/aws-sdk-java-v2/tree/master/services-custom/sns-message-manager/src/test/resources';

export const vectors: Vectors = async () => {
  const { 'test-subscription-confirmation.json': _handshake, ...deliveries } = MESSAGES;
  return Object.entries(deliveries).map(
    ([file, message]): Vector => ({
      provider: 'aws-sns',
      source: `${file} of ${FIXTURES}`,
      secret: TOPIC_ARN,
      at: Date.parse('2026-03-06T20:05:00Z'),
      request: {
        headers: { 'content-type': 'text/plain; charset=UTF-8', 'x-amz-sns-message-type': message.Type },
        body: JSON.stringify(message, null, 2),
      },
      fetches: { [CERTIFICATE_URL]: CERTIFICATE },
    }),
  );
};
