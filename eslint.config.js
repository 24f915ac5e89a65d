import tseslint from 'typescript-eslint'

const determinism = {
  message:
    'Workflow code is replayed: take time, randomness and I/O from activities or @temporalio/workflow.',
}

const numberedParameters = {
  selector: ':matches(TemplateElement[value.raw=/[$][1-9]/], Literal[value=/[$][1-9]/])',
  message:
    'Name the parameters of SQL: sql(`… = :organisationId`, { organisationId }) of src/db/connection/db.ts.',
}

export default tseslint.config(
  {
    ignores: [
      'dist/',
      'coverage/',
      '.posthorn/',
      'node_modules/',
      'test/fixtures/clients/',
      '**/*.mjs',
      '**/*.cjs',
      'eslint.config.js',
    ],
  },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'no-nested-ternary': 'error',
      'no-restricted-properties': [
        'error',
        {
          object: 'URL',
          property: 'canParse',
          message: 'Wrong in Node 20: use parseUrl of src/domain/text-rules.ts.',
        },
      ],
      'no-else-return': ['error', { allowElseIf: false }],
      'max-lines': ['error', { max: 220, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/unified-signatures': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/db/connection/db.ts', 'src/http/openapi.ts'],
    rules: { 'no-restricted-syntax': ['error', numberedParameters] },
  },
  {
    files: ['workflows/**/*.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...['process', 'fetch', 'Buffer', 'setInterval'].map((name) => ({ name, ...determinism })),
      ],
      'no-restricted-imports': [
        'error',
        {
          patterns: [{ regex: '^(node:|\\.\\./src/(?!domain/))', allowTypeImports: true, ...determinism }],
        },
      ],
    },
  },
  {
    files: ['src/http/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: "CallExpression[callee.property.name='transaction']",
          message: 'src/http translates only: a domain folder opens the transaction.',
        },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      'max-lines': ['error', { max: 320, skipBlankLines: true, skipComments: true }],
    },
  },
)
