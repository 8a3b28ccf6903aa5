import { expect, test } from 'vitest';
import { confirmationUrl } from '../../../src/webhooks/handshakes/sns.ts';

const URL_OF_SNS =
  'https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:us-west-2:123456789012:MyTopic&Token=2336412f37';

test('only a confirmation URL of AWS SNS is called', () => {
  expect(confirmationUrl({ SubscribeURL: URL_OF_SNS })).toBe(URL_OF_SNS);
  const china = URL_OF_SNS.replace('us-west-2.amazonaws.com', 'cn-north-1.amazonaws.com.cn');
  expect(confirmationUrl({ SubscribeURL: china })).toBe(china);
});

test.for([
  URL_OF_SNS.replace('https', 'http'),
  URL_OF_SNS.replace('amazonaws.com', 'amazonaws.com.attacker.example'),
  URL_OF_SNS.replace('sns.us-west-2', 'sns.us-west-2.attacker'),
  URL_OF_SNS.replace('sns.', 'sqs.'),
  URL_OF_SNS.replace('https://', 'https://attacker.example@').replace('sns.', 'x.'),
  URL_OF_SNS.replace('https://', 'https://user:password@'),
  URL_OF_SNS.replace('.com/', '.com:8443/'),
  URL_OF_SNS.replace('ConfirmSubscription', 'Unsubscribe'),
  'https://169.254.169.254/?Action=ConfirmSubscription',
  'file:///etc/passwd',
  'not a URL',
  42,
])('%s is not called', (url) => {
  expect(confirmationUrl({ SubscribeURL: url })).toBeUndefined();
});
