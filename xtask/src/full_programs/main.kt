class Shape(val name: String, val sides: Int)

fun area(shape: Shape): Int {
    if (shape.sides < 3) throw IllegalArgumentException("${shape.name} has ${shape.sides} sides")
    return shape.sides * shape.sides
}

fun main() {
    val shapes = (1..5).map { Shape("shape$it", it) }
    for (shape in shapes) {
        try {
            println("${shape.name}: ${area(shape)}")
        } catch (error: IllegalArgumentException) {
            println("refused: ${error.message}")
        }
    }
    var sum = 0
    // Garbage that is collected many times: the heap begins with 64 KiB.
    repeat(10_000) { sum += listOf(it, it + 1).sum() % 7 }
    println("sum $sum")
}
