import { z } from 'zod';

/** Format in which a webhook receives its body. */
export const BodyFormat = z.enum(['json', 'form', 'multipart', 'xml', 'text', 'raw']);
export type BodyFormat = z.infer<typeof BodyFormat>;

/** A media type, such as `application/json`. The parameters of the request's media type are ignored. */
export const MediaType = z
  .string()
  .max(128)
  .regex(
    /^[a-z0-9][a-z0-9!#$&^_.+-]*\/(?:\*|[a-z0-9][a-z0-9!#$&^_.+-]*)$/,
    'must be a media type such as "application/json"',
  );
