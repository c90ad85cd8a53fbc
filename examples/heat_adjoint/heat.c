/* Heat in a plate with two heaters, and the exact gradient of a misfit by the discrete adjoint.
 *
 *     heat readings < point           what the sensors see, [..., ...]
 *     heat misfit READINGS < point    {"value": ..., "gradient": [...]}: against the readings in a file
 *     heat field < point              the temperature at the end, a row of numbers for each row of cells
 *
 * A point is {"x": [a1, b1, q1, a2, b2, q2]}: place and power of each heater.
 *
 *     dT/dt = div(k grad T) - LOSS T + q1 G(x - (a1, b1)) + q2 G(x - (a2, b2)),     T = 0 at first, edges insulated
 *
 * on the unit square, G a Gaussian of deviation WIDTH. A wall with a door conducts badly. Cells of equal size, fluxes
 * between neighbours, explicit steps: T[n+1] = T[n] + dt (A T[n] + s), with A symmetric. For a misfit
 * J = sum_n j(T[n]) the adjoint runs backwards, l[n] = l[n+1] + dt A' l[n+1] + dj/dT[n], and dJ/ds = dt sum_n l[n+1]:
 * the derivative by all parameters for the price of one more run, exact for the discrete equations.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 32
#define CELLS (SIDE * SIDE)
#define STEPS 600
#define RECORDS 6
#define EVERY (STEPS / RECORDS)
#define SENSORS 9
#define HEATERS 2
#define PARAMETERS (3 * HEATERS)

static const double SPACING = 1.0 / SIDE, TIME_STEP = 2e-4, LOSS = 2.0, WIDTH = 0.05;
static const double WALL = 0.45, DOOR_LOW = 0.40, DOOR_HIGH = 0.55, WALL_CONDUCTIVITY = 0.02;
/* Rows and columns of the cells with a sensor. */
static const int PLACES[3] = {5, 16, 26};

static double across[SIDE][SIDE], up[SIDE][SIDE]; /* conductances to the right and to the upper neighbour, over h^2 */

static double centre(int i) { return (i + 0.5) * SPACING; }

static double conductivity(int row, int column)
{
    int in_wall = fabs(centre(column) - WALL) < SPACING;
    int in_door = centre(row) > DOOR_LOW && centre(row) < DOOR_HIGH;
    return in_wall && !in_door ? WALL_CONDUCTIVITY : 1.0;
}

static double conductance(double k, double other) { return 2.0 * k * other / (k + other) / (SPACING * SPACING); }

static void build(void)
{
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            double k = conductivity(r, c);
            across[r][c] = c + 1 < SIDE ? conductance(k, conductivity(r, c + 1)) : 0.0;
            up[r][c] = r + 1 < SIDE ? conductance(k, conductivity(r + 1, c)) : 0.0;
        }
}

/* field += dt A field. A is symmetric, so the adjoint takes the same step. */
static void step(double field[SIDE][SIDE])
{
    static double change[SIDE][SIDE];
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++)
            change[r][c] = -LOSS * field[r][c];
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            double right = c + 1 < SIDE ? across[r][c] * (field[r][c + 1] - field[r][c]) : 0.0;
            double above = r + 1 < SIDE ? up[r][c] * (field[r + 1][c] - field[r][c]) : 0.0;
            change[r][c] += right + above;
            if (c + 1 < SIDE)
                change[r][c + 1] -= right;
            if (r + 1 < SIDE)
                change[r + 1][c] -= above;
        }
    for (int i = 0; i < CELLS; i++)
        (&field[0][0])[i] += TIME_STEP * (&change[0][0])[i];
}

static double heater(const double *p, int r, int c)
{
    double a = centre(c) - p[0], b = centre(r) - p[1];
    return exp(-0.5 * (a * a + b * b) / (WIDTH * WIDTH)) / (2.0 * acos(-1.0) * WIDTH * WIDTH);
}

static void solve(const double *p, double field[SIDE][SIDE], double readings[RECORDS][SENSORS])
{
    static double source[SIDE][SIDE];
    for (int r = 0; r < SIDE; r++)
        for (int c = 0; c < SIDE; c++) {
            source[r][c] = field[r][c] = 0.0;
            for (int h = 0; h < HEATERS; h++)
                source[r][c] += p[3 * h + 2] * heater(p + 3 * h, r, c);
        }
    for (int n = 1; n <= STEPS; n++) {
        step(field);
        for (int i = 0; i < CELLS; i++)
            (&field[0][0])[i] += TIME_STEP * (&source[0][0])[i];
        if (n % EVERY == 0)
            for (int s = 0; s < SENSORS; s++)
                readings[n / EVERY - 1][s] = field[PLACES[s / 3]][PLACES[s % 3]];
    }
}

/* --8<-- [start:adjoint] */
/* dJ/dsource from dJ/dreadings, backwards in time. */
static void solve_adjoint(double slopes[RECORDS][SENSORS], double by_source[SIDE][SIDE])
{
    static double adjoint[SIDE][SIDE];
    memset(adjoint, 0, sizeof adjoint);
    memset(by_source, 0, CELLS * sizeof(double));
    for (int n = STEPS; n >= 1; n--) {
        if (n < STEPS)
            step(adjoint);
        if (n % EVERY == 0)
            for (int s = 0; s < SENSORS; s++)
                adjoint[PLACES[s / 3]][PLACES[s % 3]] += slopes[n / EVERY - 1][s];
        for (int i = 0; i < CELLS; i++)
            (&by_source[0][0])[i] += TIME_STEP * (&adjoint[0][0])[i];
    }
}
/* --8<-- [end:adjoint] */

static double misfit(const double *p, double measured[RECORDS][SENSORS], double *gradient)
{
    static double field[SIDE][SIDE], readings[RECORDS][SENSORS], slopes[RECORDS][SENSORS], by_source[SIDE][SIDE];
    double value = 0.0, count = RECORDS * SENSORS;
    solve(p, field, readings);
    for (int n = 0; n < RECORDS; n++)
        for (int s = 0; s < SENSORS; s++) {
            double off = readings[n][s] - measured[n][s];
            value += off * off / count;
            slopes[n][s] = 2.0 * off / count;
        }
    solve_adjoint(slopes, by_source);
    memset(gradient, 0, PARAMETERS * sizeof(double));
    for (int h = 0; h < HEATERS; h++)
        for (int r = 0; r < SIDE; r++)
            for (int c = 0; c < SIDE; c++) {
                double heat = by_source[r][c] * heater(p + 3 * h, r, c), power = p[3 * h + 2];
                gradient[3 * h] += heat * power * (centre(c) - p[3 * h]) / (WIDTH * WIDTH);
                gradient[3 * h + 1] += heat * power * (centre(r) - p[3 * h + 1]) / (WIDTH * WIDTH);
                gradient[3 * h + 2] += heat;
            }
    return value;
}

/* 17 digits carry a double without loss. */
static void print_list(const double *numbers, int count)
{
    for (int i = 0; i < count; i++)
        printf("%s%.17g", i ? ", " : "[", numbers[i]);
    printf("]");
}

static void fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

static void read_list(FILE *from, double *numbers, int count, const char *complaint)
{
    for (int i = 0; i < count; i++)
        if (fscanf(from, i ? " , %lf" : " [ %lf", &numbers[i]) != 1)
            fail(complaint);
}

int main(int argc, char **argv)
{
    static double field[SIDE][SIDE], readings[RECORDS][SENSORS], point[PARAMETERS], gradient[PARAMETERS];
    int length = 0;
    if (argc < 2)
        fail("usage: heat readings|misfit READINGS|field");
    if (scanf(" { \"x\" :%n", &length) == EOF || length == 0)
        fail("expected {\"x\": [...]} on stdin");
    read_list(stdin, point, PARAMETERS, "expected six numbers: place and power of two heaters");
    build();
    if (strcmp(argv[1], "misfit") == 0 && argc == 3) {
        FILE *file = fopen(argv[2], "r");
        if (file == NULL)
            fail("cannot open the file with the readings");
        read_list(file, &readings[0][0], RECORDS * SENSORS, "expected a list of readings in the file");
        fclose(file);
        printf("{\"value\": %.17g, \"gradient\": ", misfit(point, readings, gradient));
        print_list(gradient, PARAMETERS);
        printf("}\n");
        return 0;
    }
    solve(point, field, readings);
    if (strcmp(argv[1], "readings") == 0) {
        print_list(&readings[0][0], RECORDS * SENSORS);
        printf("\n");
    } else if (strcmp(argv[1], "field") == 0) {
        for (int r = 0; r < SIDE; r++)
            for (int c = 0; c < SIDE; c++)
                printf("%.9g%s", field[r][c], c + 1 < SIDE ? " " : "\n");
    } else
        fail("usage: heat readings|misfit READINGS|field");
    return 0;
}
