import type { Vectors } from './vector.ts';

export const vectors: Vectors = async () => [
  {
    provider: 'telegram',
    source:
      'https://core.telegram.org/bots/webhooks#testing-your-bot-with-updates and /bots/api#setwebhook (secret_token)',
    secret: 'A-Secret_Token-0123456789',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-telegram-bot-api-secret-token': 'A-Secret_Token-0123456789',
      },
      body: '{"update_id":10000,"message":{"date":1441645532,"chat":{"last_name":"Test Lastname","id":1111111,"first_name":"Test","username":"Test"},"message_id":1365,"from":{"last_name":"Test Lastname","id":1111111,"first_name":"Test","username":"Test"},"text":"/start"}}',
    },
  },
];
