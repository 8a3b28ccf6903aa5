/** Form of an approval or a signal, with a property of each kind: choice, number, text with a default. */
export const FORM = {
  type: 'object',
  properties: {
    region: { type: 'string', enum: ['eu', 'us'] },
    amount: { type: 'integer', minimum: 1 },
    note: { type: 'string', default: 'none' },
  },
  required: ['region', 'amount'],
  additionalProperties: false,
};
