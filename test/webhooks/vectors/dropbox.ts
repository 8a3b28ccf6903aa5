import type { Vectors } from './vector.ts';

/** Both deliveries are output of the tool, called with `notify <url> -s <secret> -a <account>…`. */
const SOURCE =
  'https://github.com/dropbox/dropbox_hook at 689236a6ec6b8cbc55a0f6326c1c9e490f8a52c0 (dropbox_hook.py notify)';

export const vectors: Vectors = async () => [
  {
    provider: 'dropbox',
    source: SOURCE,
    secret: '0123456789abcde',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-dropbox-signature': 'f17f1bd33fbdb84342d3b40a8a043b5e76086a9801b4aea00c4efa798567ac07',
      },
      body: '{"list_folder": {"accounts": ["dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc"]}}',
    },
  },
  {
    provider: 'dropbox',
    source: SOURCE,
    secret: '4fxz2c9q7t3m1kd',
    request: {
      headers: {
        'content-type': 'application/json',
        'x-dropbox-signature': 'b3e0b6f70f981b6133d930ca9aac7e327d3188a4519e3592486c026c2a812057',
      },
      body: '{"list_folder": {"accounts": ["dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc", "dbid:BBH4f99T0taONIb-OurWxbNQ6ywGRopQngc"]}}',
    },
  },
];
