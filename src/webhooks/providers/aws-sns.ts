import type { Provider } from './provider.ts';

export const awsSns: Provider = {
  id: 'aws-sns',
  name: 'Amazon SNS',
  sources: [
    'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
    'https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html',
    'https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html',
  ],
  checkedOn: '2026-11-23',
  auth: [{ type: 'built-in', verifier: 'aws-sns' }],
  secretFrom: 'sender',
  secretHelp: 'Pipe the ARN of the topic into provision. Messages of all other topics are refused.',
  protects: { body: false, url: false, time: false, sender: true },
  protectedFields: [
    'Message',
    'MessageId',
    'Subject',
    'SubscribeURL',
    'Timestamp',
    'Token',
    'TopicArn',
    'Type',
  ],
  body: 'json',
  contentTypes: ['text/plain', 'application/json'],
  deliveryId: { field: 'MessageId' },
  eventType: { field: 'Type' },
  events: ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'],
  handshakes: [
    {
      method: 'POST',
      when: [{ at: { field: 'Type' }, equals: 'SubscriptionConfirmation' }],
      isAuthenticated: true,
      effect: { type: 'confirm-subscription' },
      reply: { status: 200, headers: {} },
    },
  ],
  ackAfterMs: 12_000,
  pitfalls: [
    'Leave raw message delivery off: a raw message has no signature.',
    'The published text is the string in "Message". JSON in it must be parsed once more.',
    'The signature does not cover MessageAttributes and UnsubscribeURL, so do not decide by them.',
    'Set the SignatureVersion of the topic to 2, so that SHA-256 replaces SHA-1.',
  ],
  sample: {
    headers: { 'content-type': 'text/plain; charset=UTF-8', 'x-amz-sns-message-type': 'Notification' },
    body:
      '{"Type":"Notification","MessageId":"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",' +
      '"TopicArn":"arn:aws:sns:us-west-2:123456789012:MyTopic","Subject":"My First Message","Message":"Hello world!",' +
      '"Timestamp":"2012-05-02T00:54:06.655Z","SignatureVersion":"1","Signature":"EXAMPLEw6JRN...",' +
      '"SigningCertURL":"https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem",' +
      '"UnsubscribeURL":"https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:us-west-2:' +
      '123456789012:MyTopic:c9135db0-26c4-47ec-8998-413945fb5a96"}',
  },
};
